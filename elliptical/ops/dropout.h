// SPDX-License-Identifier: MIT
//
// Dropout of the fused layers: element i of a call is dropped as a function of (seed, i) alone
// (Philox4x32-10, kernels/dropout.h), so that the backward computes the mask again instead of
// storing it, and a step repeats exactly whatever came before it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace elliptical::ops {

struct ElementDropout {
  double p = 0.0;    ///< chance of being dropped, in [0, 1); what stays is divided by 1 - p
  int64_t seed = 0;  ///< never reuse one within a step
};

/// drop(x) alone, x of any shape: the final hidden state.
at::Tensor element_dropout(const at::Tensor& x, ElementDropout dropout);
at::Tensor element_dropout_composite(const at::Tensor& x, ElementDropout dropout);

}  // namespace elliptical::ops
