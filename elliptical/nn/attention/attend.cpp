// SPDX-License-Identifier: MIT
#include "elliptical/nn/attention/attend.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/torch.h>

#include <cmath>
#include <limits>

#include "elliptical/ops/qkv_attention.h"

namespace elliptical::nn {
namespace {

/// The probabilities, (B, H, N, M); rows that see nothing are 0.
at::Tensor probabilities(const HeadMixer::Heads& heads,
                         const std::optional<at::Tensor>& metric,
                         const AttendOptions& options,
                         const AttentionContext& context) {
  const double scale =
      options.scale.value_or(1.0 / std::sqrt(static_cast<double>(heads.q.size(3))));
  const at::Tensor q = (metric ? heads.q * *metric : heads.q) * scale;
  const at::Tensor seen = visible_keys(heads.q.size(2), heads.k.size(2), context);
  const at::Tensor logits = at::where(seen, q.matmul(heads.k.transpose(-2, -1)),
                                      -std::numeric_limits<double>::infinity());
  return at::where(seen, logits.softmax(-1), 0.0);
}

}  // namespace

at::Tensor visible_keys(int64_t num_queries, int64_t num_keys, const AttentionContext& context) {
  at::Tensor seen = at::ones({num_queries, num_keys}, at::kBool);
  if (context.is_causal) seen = seen.tril(num_keys - num_queries);
  if (context.key_lengths) {
    const at::Tensor real = at::arange(num_keys) < context.key_lengths->unsqueeze(-1);  // (B, M)
    seen = seen.logical_and(real.unsqueeze(1).unsqueeze(1));
  }
  return seen;
}

void leave_trace(const HeadMixer::Heads& heads,
                 const std::optional<at::Tensor>& metric,
                 const std::function<at::Tensor()>& map,
                 const AttentionContext& context) {
  if (context.trace == nullptr) return;
  const at::NoGradGuard no_grad;
  const auto write = [&](const char* what, const at::Tensor& tensor) {
    const std::string name = "layers." + std::to_string(context.layer) + "." + what;
    context.trace->tensors[name] = tensor.detach();
  };
  write("queries", heads.q);
  write("keys", heads.k);
  write("values", heads.v);
  if (metric) write("metric", *metric);
  write("attention", map());
}

at::Tensor attend(const HeadMixer::Heads& heads,
                  const std::optional<at::Tensor>& metric,
                  const AttendOptions& options,
                  const AttentionContext& context) {
  ops::AttentionOptions call{
      .is_causal = context.is_causal, .scale = options.scale, .key_lengths = context.key_lengths};
  if (context.training && options.dropout > 0.0) {
    call.dropout_p = options.dropout;
    call.generator = at::detail::createCPUGenerator(context.seed("attention dropout"));
  }
  leave_trace(
      heads, metric, [&] { return probabilities(heads, metric, options, context); }, context);
  const bool keeps_all = !context.num_kept || context.is_causal || context.key_lengths;
  const int64_t num_kept = keeps_all ? heads.q.size(2) : *context.num_kept;
  const auto kept = [&](const at::Tensor& rows) {  // one row is one for all tokens
    return rows.size(2) <= num_kept ? rows : rows.narrow(2, 0, num_kept);
  };
  const std::optional<at::Tensor> kept_metric = metric ? std::optional(kept(*metric)) : metric;
  if (heads.qkv.defined()) {
    return ops::qkv_attention({heads.qkv, heads.q, heads.k, heads.v}, kept_metric, call, num_kept);
  }
  return ops::attention(kept(heads.q), heads.k, heads.v, kept_metric, call);
}

}  // namespace elliptical::nn
