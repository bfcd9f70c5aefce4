// SPDX-License-Identifier: MIT
//
// Embedding of tokens with their positions, in one pass over memory and differentiable:
//
//   y[b, n] = drop(scale * table[tokens[b, n]] + positions[n])
//
// float32 on the CPU runs fused; everything else takes the composite path, which is also the tests'
// reference.
#pragma once

#include <ATen/core/Tensor.h>

#include "elliptical/ops/dropout.h"

namespace elliptical::ops {

struct EmbedOptions {
  double scale = 1.0;
  ElementDropout dropout = {};
  /// The table's gradient is a sparse tensor. For a table that is also the output's weight:
  /// autograd then adds its few rows into the output's dense gradient, and no second (V, C)
  /// gradient is filled and added. The composite path takes no notice.
  bool sparse_gradient = false;
};

/// table (V, C), tokens (B, N) int64 in [0, V), positions (N, C) without gradient -> (B, N, C).
at::Tensor embed(const at::Tensor& table,
                 const at::Tensor& tokens,
                 const at::Tensor& positions,
                 const EmbedOptions& options = {});
at::Tensor embed_composite(const at::Tensor& table,
                           const at::Tensor& tokens,
                           const at::Tensor& positions,
                           const EmbedOptions& options = {});

}  // namespace elliptical::ops
