// SPDX-License-Identifier: MIT
//
// What stands around the matrix products of a pre-norm block, each one autograd node:
//
//   residual_norm        sum = residual + f x,  normed = norm(sum) * weight + norm_bias
//   gelu_feed_forward    y = gelu(x up^T + up_bias) down^T + down_bias, in blocks of rows
//   normed_feed_forward  the second half of a block: a residual_norm, the layer, a residual_norm
//
// f is a factor for each sample (stochastic depth). gelu is the exact one,
// x (1 + erf(x / sqrt(2))) / 2. float32 on the CPU runs fused; everything else takes the composite
// path, which is also the tests' reference (`*_composite`).
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

namespace elliptical::ops {

struct NormedSum {
  at::Tensor sum, normed;
};

/// x and residual (B, ..., C); factors (B) without gradient, 1 when absent; weight, norm_bias (C).
NormedSum residual_norm(const at::Tensor& x,
                        const at::Tensor& residual,
                        const std::optional<at::Tensor>& factors,
                        const at::Tensor& weight,
                        const at::Tensor& norm_bias,
                        double eps);
NormedSum residual_norm_composite(const at::Tensor& x,
                                  const at::Tensor& residual,
                                  const std::optional<at::Tensor>& factors,
                                  const at::Tensor& weight,
                                  const at::Tensor& norm_bias,
                                  double eps);

/// x (..., C), up (F, C), up_bias (F), down (C, F), down_bias (C). The hidden layer is made and
/// used a block of rows at a time, so that it is in the cache in between; without gradient it is
/// not kept. Few rows take the composite path, where products need no packing.
at::Tensor gelu_feed_forward(const at::Tensor& x,
                             const at::Tensor& up,
                             const at::Tensor& up_bias,
                             const at::Tensor& down,
                             const at::Tensor& down_bias);
at::Tensor gelu_feed_forward_composite(const at::Tensor& x,
                                       const at::Tensor& up,
                                       const at::Tensor& up_bias,
                                       const at::Tensor& down,
                                       const at::Tensor& down_bias);

struct NormWeights {
  at::Tensor weight, bias;  ///< (C)
  double eps;
};
struct GeluFeedForwardWeights {
  at::Tensor up, up_bias, down, down_bias;
};

/// With s = residual + x: sum = s + gelu_feed_forward(norm `before` of s), and norm `after` of it.
/// The same bits as those functions one after the other; where no gradient is asked for, a block of
/// rows goes through all of them while it is in the cache.
NormedSum normed_feed_forward(const at::Tensor& x,
                              const at::Tensor& residual,
                              const NormWeights& before,
                              const GeluFeedForwardWeights& weights,
                              const NormWeights& after);

}  // namespace elliptical::ops
