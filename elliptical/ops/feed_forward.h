// SPDX-License-Identifier: MIT
//
// What stands between the matrix products of a transformer block, each in one pass over memory and
// differentiable:
//
//   bias_relu_dropout      y = drop(max(x + bias, 0))
//   residual_dropout_norm  y = norm(residual + drop(x + bias)) * weight + norm_bias     (post-norm)
//   embed                  y = drop(scale * table[token] + position)
//   feed_forward           y = drop(max(x up^T + up_bias, 0)) down^T: with its products, in chunks
//
// x is (..., C). float32 on the CPU runs fused; everything else takes the composite path, which is
// also the tests' reference (`*_composite`).
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "elliptical/ops/dropout.h"

namespace elliptical::ops {

/// x (..., F), bias (F).
at::Tensor bias_relu_dropout(const at::Tensor& x, const at::Tensor& bias, ElementDropout dropout);
at::Tensor bias_relu_dropout_composite(const at::Tensor& x,
                                       const at::Tensor& bias,
                                       ElementDropout dropout);

/// x and residual (..., C); bias, weight, norm_bias (C). Layer norm over the last dimension.
at::Tensor residual_dropout_norm(const at::Tensor& x,
                                 const std::optional<at::Tensor>& bias,
                                 const at::Tensor& residual,
                                 const at::Tensor& weight,
                                 const at::Tensor& norm_bias,
                                 double eps,
                                 ElementDropout dropout);
at::Tensor residual_dropout_norm_composite(const at::Tensor& x,
                                           const std::optional<at::Tensor>& bias,
                                           const at::Tensor& residual,
                                           const at::Tensor& weight,
                                           const at::Tensor& norm_bias,
                                           double eps,
                                           ElementDropout dropout);

/// x (..., C), up (F, C), up_bias (F), down (C, F): the whole feed-forward layer but for its last
/// bias, which residual_dropout_norm adds. The hidden layer is made and used a chunk of rows at a
/// time, so that it is in the cache in between.
at::Tensor feed_forward(const at::Tensor& x,
                        const at::Tensor& up,
                        const at::Tensor& up_bias,
                        const at::Tensor& down,
                        ElementDropout dropout);
at::Tensor feed_forward_composite(const at::Tensor& x,
                                  const at::Tensor& up,
                                  const at::Tensor& up_bias,
                                  const at::Tensor& down,
                                  ElementDropout dropout);

/// table (V, C), tokens (B, N) int64 in [0, V), positions (N, C) without gradient -> (B, N, C).
/// `sparse_gradient`: the table's gradient is a sparse tensor. For a table that is also the
/// output's weight: autograd then adds its few rows into the output's dense gradient, and no second
/// (V, C) gradient is filled and added.
at::Tensor embed(const at::Tensor& table,
                 const at::Tensor& tokens,
                 const at::Tensor& positions,
                 double scale,
                 ElementDropout dropout,
                 bool sparse_gradient = false);
at::Tensor embed_composite(const at::Tensor& table,
                           const at::Tensor& tokens,
                           const at::Tensor& positions,
                           double scale,
                           ElementDropout dropout);

/// drop(x) alone: the final hidden state.
at::Tensor element_dropout(const at::Tensor& x, ElementDropout dropout);
at::Tensor element_dropout_composite(const at::Tensor& x, ElementDropout dropout);

}  // namespace elliptical::ops
