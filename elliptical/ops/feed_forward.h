// SPDX-License-Identifier: MIT
//
// The feed-forward layer of a language model, and what stands between its products alone, each
// differentiable:
//
//   bias_relu_dropout  y = drop(max(x + bias, 0)), in one pass over memory
//   feed_forward       y = drop(max(x up^T + up_bias, 0)) down^T: with its products, in chunks
//
// float32 on the CPU runs fused; everything else takes the composite path, which is also the tests'
// reference (`*_composite`).
#pragma once

#include <ATen/core/Tensor.h>

#include "elliptical/ops/dropout.h"

namespace elliptical::ops {

/// x (..., F), bias (F).
at::Tensor bias_relu_dropout(const at::Tensor& x, const at::Tensor& bias, ElementDropout dropout);
at::Tensor bias_relu_dropout_composite(const at::Tensor& x,
                                       const at::Tensor& bias,
                                       ElementDropout dropout);

/// All but the last bias, which residual_dropout_norm adds.
struct FeedForwardWeights {
  at::Tensor up;       ///< (F, C)
  at::Tensor up_bias;  ///< (F)
  at::Tensor down;     ///< (C, F)
};

/// x (..., C) -> (..., C). The hidden layer is made and used a chunk of rows at a time, so that it
/// is in the cache in between.
at::Tensor feed_forward(const at::Tensor& x,
                        const FeedForwardWeights& weights,
                        ElementDropout dropout);
at::Tensor feed_forward_composite(const at::Tensor& x,
                                  const FeedForwardWeights& weights,
                                  ElementDropout dropout);

}  // namespace elliptical::ops
