// SPDX-License-Identifier: MIT
//
// The tensors of a case, made once and shared by everybody who is timed on it, and the double
// precision answer they are checked against.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "bench/attention_case.h"

namespace elliptical::bench {

/// What a contestant computed: out, and with a backward pass the gradients of q, k and v.
struct Results {
  at::Tensor out;                                  // (B, H, N, D)
  std::optional<std::array<at::Tensor, 3>> grads;  // of q, k, v
};

struct Problem {
  explicit Problem(const AttentionCase& c);

  AttentionCase shape;
  at::Tensor q, k, v;                          // (B, H, N, D), require grad
  at::Tensor metric;                           // of the axes of shape.metric
  at::Tensor d_out;                            // (B, H, N, D), zero for padded queries
  std::optional<at::Tensor> key_lengths;       // (B)
  std::optional<at::Tensor> key_padding_mask;  // (B, 1, 1, N) bool, the same for torch
  std::optional<at::Tensor> additive_mask;     // of the axes of shape.mask_add
};

/// Attention written with matmul and softmax, in the dtype of `q`. With a metric or (no value)
/// without.
at::Tensor unfused_attention(const Problem& problem,
                             const at::Tensor& q,
                             const at::Tensor& k,
                             const at::Tensor& v,
                             const std::optional<at::Tensor>& metric);

/// The largest error of one tensor, relative to its largest exact value, and what it may be: twice
/// the error of the unfused float computation.
struct TensorError {
  std::string tensor;  ///< "out", "dq", "dk", "dv"
  double error = 0;
  double limit = 0;
};

/// Compares with the unfused computation in double, with or without the metric; in all heads, or in
/// one when there are many scores.
std::vector<TensorError> errors(const Problem& problem, const Results& results, bool with_metric);

}  // namespace elliptical::bench
