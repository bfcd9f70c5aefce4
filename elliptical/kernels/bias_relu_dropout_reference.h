// SPDX-License-Identifier: MIT
//
// The layer of bias_relu_dropout.h as its formula says it, one element at a time: the version to read
// first and the one the fast kernel is tested against. Same contract, without threads. Header only:
// tests evaluate it in double, and in numbers that carry error bounds.
#pragma once

#include "elliptical/kernels/bias_relu_dropout.h"
#include "elliptical/kernels/dropout_reference.h"

namespace elliptical::kernels {

template <class T>
void bias_relu_dropout_reference_forward(
    Rows size, const T* x, const T* bias, const ElementDropout& dropout, T* y) {
  for (int64_t i = 0; i < size.rows * size.C; ++i) {
    const T z = x[i] + bias[i % size.C];
    y[i] = (z < T(0) ? T(0) : z) * T(keep_factor(dropout, i));
  }
}

template <class T>
void bias_relu_dropout_reference_backward(
    Rows size, const T* dy, const T* y, const ElementDropout& dropout, T* dx, T* d_bias) {
  for (int64_t c = 0; c < size.C; ++c) d_bias[c] = T(0);
  for (int64_t i = 0; i < size.rows * size.C; ++i) {
    dx[i] = T(0) < y[i] ? dy[i] * T(dropout.keep_scale) : T(0);
    d_bias[i % size.C] += dx[i];
  }
}

}  // namespace elliptical::kernels
