// SPDX-License-Identifier: MIT
//
// Attention on queries, keys and values that one product made, (B, N, 3 H D), as most models have
// them. The heads are views of it. So are their gradients of its gradient: the kernel writes all
// three where the product's backward reads them, and nothing is stacked. A function for C++ alone:
// results that share memory are nothing that the dispatcher's ops may have.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "elliptical/ops/attention.h"

namespace elliptical::ops {

struct QkvHeads {
  at::Tensor all;      ///< (B, N, 3, H, D), for qkv_attention alone
  at::Tensor q, k, v;  ///< (B, H, N, D), differentiable like any views
};

/// Views of qkv (B, N, 3 H D): nothing is copied, and their gradients meet in one tensor.
QkvHeads split_heads(const at::Tensor& qkv, int64_t num_heads);

/// The same bits as attention(q, k, v, metric, options), forward and backward. With `num_queries`:
/// of so many first queries, (B, H, num_queries, D).
at::Tensor qkv_attention(const QkvHeads& heads,
                         const std::optional<at::Tensor>& metric = {},
                         const AttentionOptions& options = {},
                         std::optional<int64_t> num_queries = {});

}  // namespace elliptical::ops
