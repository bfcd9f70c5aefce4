// SPDX-License-Identifier: MIT
#include "elliptical/ops/attention.h"

#include <ATen/Functions.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <limits>

#include "elliptical/ops/attention_impl.h"

namespace elliptical::ops {
namespace {

/// The arguments of the op, without a seed.
AttentionArgs make_args(const at::Tensor& q,
                        const at::Tensor& k,
                        const at::Tensor& v,
                        const std::optional<at::Tensor>& metric,
                        const AttentionOptions& options,
                        bool need_lse) {
  return {.q = q,
          .k = k,
          .v = v,
          .metric = metric,
          .attn_mask = options.attn_mask,
          .key_lengths = options.key_lengths,
          .dropout_seed = {},
          .is_causal = options.is_causal,
          .scale = options.scale,
          .dropout_p = options.dropout_p,
          .need_lse = need_lse};
}

/// Checks the arguments of a call that draws its seed itself: a refused call draws none.
void check_before_seed(AttentionArgs args) {
  args.dropout_seed = at::zeros({1}, at::kLong);
  check_attention(args);
}

AttentionResult call_attention(const AttentionArgs& args) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("elliptical::attention", "")
                             .typed<AttentionSignature<AttentionResult>>();
  return call_flat(args, [](const auto&... flat) { return op.call(flat...); });
}

}  // namespace

AttentionArgs seeded_args(const at::Tensor& q,
                          const at::Tensor& k,
                          const at::Tensor& v,
                          const std::optional<at::Tensor>& metric,
                          const AttentionOptions& options,
                          bool need_lse) {
  AttentionArgs args = make_args(q, k, v, metric, options, need_lse);
  if (options.dropout_p > 0.0) {
    check_before_seed(args);
    args.dropout_seed = options.dropout_seed
                            ? at::full({1}, *options.dropout_seed, at::kLong)
                            : at::randint(std::numeric_limits<int64_t>::max(), {1},
                                          options.generator, at::TensorOptions(at::kLong));
  }
  return args;
}

at::Tensor attention(const at::Tensor& q,
                     const at::Tensor& k,
                     const at::Tensor& v,
                     const std::optional<at::Tensor>& metric,
                     const AttentionOptions& options) {
  return std::get<0>(call_attention(seeded_args(q, k, v, metric, options, /*need_lse=*/false)));
}

std::tuple<at::Tensor, at::Tensor> attention_with_lse(const at::Tensor& q,
                                                      const at::Tensor& k,
                                                      const at::Tensor& v,
                                                      const std::optional<at::Tensor>& metric,
                                                      const AttentionOptions& options) {
  return call_attention(seeded_args(q, k, v, metric, options, /*need_lse=*/true));
}

std::tuple<at::Tensor, at::Tensor> attention_composite(const at::Tensor& q,
                                                       const at::Tensor& k,
                                                       const at::Tensor& v,
                                                       const std::optional<at::Tensor>& metric,
                                                       const AttentionOptions& options) {
  const AttentionArgs args = seeded_args(q, k, v, metric, options, /*need_lse=*/true);
  check_attention(args);
  return attention_composite(args);
}

at::Tensor attention_via_sdpa(const at::Tensor& q,
                              const at::Tensor& k,
                              const at::Tensor& v,
                              const std::optional<at::Tensor>& metric,
                              const AttentionOptions& options) {
  const AttentionArgs args = make_args(q, k, v, metric, options, /*need_lse=*/false);
  TORCH_CHECK_VALUE(args.dropout_p == 0.0, "attention_via_sdpa: dropout_p must be 0, got ",
                    args.dropout_p);
  check_attention(args);
  return attention_via_sdpa(args);
}

Explanation explain(const at::Tensor& q,
                    const at::Tensor& k,
                    const at::Tensor& v,
                    const std::optional<at::Tensor>& metric,
                    const AttentionOptions& options,
                    bool need_lse) {
  const AttentionArgs args = make_args(q, k, v, metric, options, need_lse);
  check_before_seed(args);
  return choose_path(args);
}

AttentionResult attention_op(const AttentionArgs& args) {
  check_attention(args);
  const auto without_lse = [&](const at::Tensor& out) {
    return AttentionResult(out, at::empty({0}, out.options()));
  };
  if (!fused_applies(args) && sdpa_applies(args)) return without_lse(attention_via_sdpa(args));
  AttentionResult result = fused_applies(args) ? attention_fused(args) : attention_composite(args);
  return args.need_lse ? result : without_lse(std::get<0>(result));
}

std::vector<std::string> explain_op(const AttentionArgs& args) {
  check_attention(args);
  const Explanation explanation = choose_path(args);
  std::vector<std::string> words{explanation.path};
  for (const auto& [path, reason] : explanation.refused) {
    words.push_back(path);
    words.push_back(reason);
  }
  return words;
}

}  // namespace elliptical::ops
