// SPDX-License-Identifier: MIT
//
// Between the two products of a feed-forward layer, forward and backward, each in one pass over
// memory, on contiguous float32:
//
//   y = drop(max(x + bias, 0))
//
// Dropout multiplies element i of the call's matrix by 0 or 1 / (1 - p), computed again in the
// backward. Same bits for any number of threads; the same mask for any instruction set. The slow,
// obvious version is bias_relu_dropout_reference.h.
#pragma once

#include "elliptical/kernels/dropout.h"
#include "elliptical/kernels/parallel.h"
#include "elliptical/kernels/rows.h"

namespace elliptical::kernels {

/// y may be x.
void bias_relu_dropout_forward(Rows size,
                               const float* x,
                               const float* bias,
                               const ElementDropout& dropout,
                               float* y,
                               const ParallelFor& parallel_for);

/// y is the forward's result: what is 0 there was dropped or negative. dx may be dy. d_bias may be
/// null.
void bias_relu_dropout_backward(Rows size,
                                const float* dy,
                                const float* y,
                                const ElementDropout& dropout,
                                float* dx,
                                float* d_bias,
                                const ParallelFor& parallel_for);

}  // namespace elliptical::kernels
