// SPDX-License-Identifier: MIT
//
// The feed-forward layer of a vision transformer, differentiable, and the half of a pre-norm block
// around it:
//
//   gelu_feed_forward    y = gelu(x up^T + up_bias) down^T + down_bias, in blocks of rows
//   normed_feed_forward  the second half of a block: a residual_norm, the layer, a residual_norm
//
// gelu is the exact one, x (1 + erf(x / sqrt(2))) / 2. float32 on the CPU runs fused; everything
// else takes the composite path, which is also the tests' reference (`*_composite`).
#pragma once

#include <ATen/core/Tensor.h>

#include "elliptical/ops/residual_norm.h"

namespace elliptical::ops {

struct GeluFeedForwardWeights {
  at::Tensor up;         ///< (F, C)
  at::Tensor up_bias;    ///< (F)
  at::Tensor down;       ///< (C, F)
  at::Tensor down_bias;  ///< (C)
};

/// x (..., C) -> (..., C). The hidden layer is made and used a block of rows at a time, so that it
/// is in the cache in between; without gradient it is not kept. Few rows take the composite path,
/// where products need no packing.
at::Tensor gelu_feed_forward(const at::Tensor& x, const GeluFeedForwardWeights& weights);
at::Tensor gelu_feed_forward_composite(const at::Tensor& x, const GeluFeedForwardWeights& weights);

/// With s = residual + x: sum = s + gelu_feed_forward(norm `before` of s), and norm `after` of it.
/// The same bits as those functions one after the other; where no gradient is asked for, a block of
/// rows goes through all of them while it is in the cache.
NormedSum normed_feed_forward(const at::Tensor& x,
                              const at::Tensor& residual,
                              const NormWeights& before,
                              const GeluFeedForwardWeights& weights,
                              const NormWeights& after);

}  // namespace elliptical::ops
