// SPDX-License-Identifier: MIT
//
// Dropout of an array as its formula says it, one element at a time: the version to read
// first and the one the fast kernel is tested against. Same contract, without threads. Header only:
// tests evaluate it in double, and in numbers that carry error bounds.
#pragma once

#include <cstdint>

#include "elliptical/kernels/dropout.h"

namespace elliptical::kernels {

/// 0 or 1 / (1 - p).
inline double keep_factor(const ElementDropout& dropout, int64_t i) {
  return dropout.keeps(i) ? dropout.keep_scale : 0.0;
}

template <class T>
void scaled_dropout_reference(
    int64_t count, const T* x, double factor, const ElementDropout& dropout, T* y) {
  for (int64_t i = 0; i < count; ++i) y[i] = T(factor) * x[i] * T(keep_factor(dropout, i));
}

}  // namespace elliptical::kernels
