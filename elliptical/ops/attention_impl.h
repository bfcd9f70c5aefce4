// SPDX-License-Identifier: MIT
//
// What the sources of the attention op share: its arguments in one struct, their checks, the choice
// of the path, and the paths.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <tuple>

#include "elliptical/ops/attention.h"
#include "elliptical/ops/flat_arguments_impl.h"

namespace elliptical::ops {

/// The arguments of `elliptical::attention` in the order of its schema.
struct AttentionArgs {
  at::Tensor q, k, v;
  std::optional<at::Tensor> metric, attn_mask, key_lengths, dropout_seed;
  bool is_causal = false;
  std::optional<double> scale;
  double dropout_p = 0.0;
  bool need_lse = true;

  auto flat() const {
    return std::tie(q, k, v, metric, attn_mask, key_lengths, dropout_seed, is_causal, scale,
                    dropout_p, need_lse);
  }
  /// `scale`, or 1 / sqrt(D); 1 when D = 0, where every logit is an empty sum.
  double scale_or_default() const;
};

/// The arguments of a call, checked where it draws a seed, with that seed if dropout asks for one.
AttentionArgs seeded_args(const at::Tensor& q,
                          const at::Tensor& k,
                          const at::Tensor& v,
                          const std::optional<at::Tensor>& metric,
                          const AttentionOptions& options,
                          bool need_lse);

/// (out, lse)
using AttentionResult = std::tuple<at::Tensor, at::Tensor>;

/// Throws c10::ValueError or c10::TypeError that names the argument, what it must be and what it
/// is. Values of key_lengths are checked by `check_lengths` where they are first read: a traced
/// tensor has none.
void check_attention(const AttentionArgs& args);

/// The choice of the path for arguments that passed `check_attention`: fused, else sdpa, else
/// composite, which takes everything.
bool fused_applies(const AttentionArgs& args);
bool sdpa_applies(const AttentionArgs& args);
Explanation choose_path(const AttentionArgs& args);

AttentionResult attention_fused(const AttentionArgs& args);
AttentionResult attention_composite(const AttentionArgs& args);
at::Tensor attention_via_sdpa(const AttentionArgs& args);

/// The signature of `elliptical::attention` and, but for the result, of `elliptical::_explain`.
template <class Result>
using AttentionSignature = Result(const at::Tensor& q,
                                  const at::Tensor& k,
                                  const at::Tensor& v,
                                  const std::optional<at::Tensor>& metric,
                                  const std::optional<at::Tensor>& attn_mask,
                                  const std::optional<at::Tensor>& key_lengths,
                                  const std::optional<at::Tensor>& dropout_seed,
                                  bool is_causal,
                                  std::optional<double> scale,
                                  double dropout_p,
                                  bool need_lse);

/// `elliptical::attention`: checks, chooses, runs. Made of other ops only, so torch differentiates,
/// traces and batches it by itself.
AttentionResult attention_op(const AttentionArgs& args);
/// `elliptical::_explain`: the path, then name and reason of each refused one.
std::vector<std::string> explain_op(const AttentionArgs& args);

}  // namespace elliptical::ops
