// SPDX-License-Identifier: MIT
#include "elliptical/nn/attention/attend.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/torch.h>

#include <cmath>
#include <limits>

#include "elliptical/ops/qkv_attention.h"

namespace elliptical::nn {
at::Tensor attention_map(const HeadMixer::Heads& heads,
                         const std::optional<at::Tensor>& metric,
                         const AttendOptions& options,
                         const Pass& pass) {
  const double scale =
      options.scale.value_or(1.0 / std::sqrt(static_cast<double>(heads.q.size(3))));
  const at::Tensor q = (metric ? heads.q * *metric : heads.q) * scale;
  const at::Tensor seen = visible_keys(heads.q.size(2), heads.k.size(2), pass);
  const at::Tensor logits = at::where(seen, q.matmul(heads.k.transpose(-2, -1)),
                                      -std::numeric_limits<double>::infinity());
  return at::where(seen, logits.softmax(-1), 0.0);
}

at::Tensor visible_keys(int64_t num_queries, int64_t num_keys, const Pass& pass) {
  at::Tensor seen = at::ones({num_queries, num_keys}, at::kBool);
  if (pass.is_causal) seen = seen.tril(num_keys - num_queries);
  if (pass.key_lengths) {
    const at::Tensor real = at::arange(num_keys) < pass.key_lengths->unsqueeze(-1);  // (B, M)
    seen = seen.logical_and(real.unsqueeze(1).unsqueeze(1));
  }
  return seen;
}

void leave_trace(const HeadMixer::Heads& heads,
                 const std::optional<at::Tensor>& metric,
                 const std::function<at::Tensor()>& map,
                 const Pass& pass) {
  pass.keep(Traced::kQueries, heads.q);
  pass.keep(Traced::kKeys, heads.k);
  pass.keep(Traced::kValues, heads.v);
  if (metric) pass.keep(Traced::kMetric, *metric);
  if (!pass.traces(Traced::kMap)) return;
  const at::NoGradGuard no_grad;
  pass.keep(Traced::kMap, map());
}

at::Tensor attend(const HeadMixer::Heads& heads,
                  const std::optional<at::Tensor>& metric,
                  const AttendOptions& options,
                  const Pass& pass) {
  ops::AttentionOptions call{
      .is_causal = pass.is_causal, .scale = options.scale, .key_lengths = pass.key_lengths};
  if (pass.training && options.dropout > 0.0) {
    call.dropout_p = options.dropout;
    call.generator = at::detail::createCPUGenerator(pass.seed("attention dropout"));
  }
  if (options.leaves_trace) {
    leave_trace(heads, metric, [&] { return attention_map(heads, metric, options, pass); }, pass);
  }
  const bool keeps_all = !pass.num_kept || pass.is_causal || pass.key_lengths;
  const int64_t num_kept = keeps_all ? heads.q.size(2) : *pass.num_kept;
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
