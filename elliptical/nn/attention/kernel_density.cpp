// SPDX-License-Identifier: MIT
#include "elliptical/nn/attention/kernel_density.h"

#include <torch/torch.h>

#include <cmath>

namespace elliptical::nn {
double default_kernel_scale(const AttentionShape& shape) {
  return 1.0 / std::sqrt(static_cast<double>(shape.head_dim()));
}

at::Tensor normalized_keys(const at::Tensor& k) {
  return k / at::linalg_vector_norm(k, 2, {-1}, /*keepdim=*/true).clamp_min(1e-12);
}

LogKernel log_kernel(const at::Tensor& q,
                     const at::Tensor& keys,
                     const std::optional<at::Tensor>& metric,
                     const at::Tensor& log_weights,
                     double kernel_scale) {
  const double scale = 2.0 * kernel_scale;
  std::vector<at::Tensor> q_parts{q}, k_parts{keys};
  if (metric) {
    // -s k^T M k varies from key to key, unlike -s |k|^2.
    q_parts = {q * *metric, metric->expand_as(q)};
    k_parts = {keys, keys.square() * -0.5};
  }
  if (log_weights.defined()) {
    const int64_t B = keys.size(0), H = keys.size(1), M = keys.size(2);
    q_parts.push_back(at::ones({1, 1, 1, 1}, q.options()).expand({B, H, q.size(2), 1}));
    k_parts.push_back((log_weights / scale).unsqueeze(-1).expand({B, H, M, 1}));
  }
  if (q_parts.size() == 1) return {q, keys, scale};
  return {at::cat(q_parts, -1), at::cat(k_parts, -1), scale};
}

at::Tensor normalizing_factor(const at::Tensor& marginal,
                              const at::Tensor& joint,
                              const at::Tensor& real,
                              bool running) {
  const auto total = [&](const at::Tensor& weights) {
    at::Tensor sum = real.defined() ? weights * real : weights;
    sum = running ? sum.cumsum(-1) : sum.sum(-1, /*keepdim=*/true);
    return at::where(sum > 0, sum, 1.0);  // a sequence of padding alone
  };
  return total(marginal) / total(joint);
}

at::Tensor kernel_regression(const HeadMixer::Heads& heads,
                             const std::optional<at::Tensor>& metric,
                             const std::optional<KeyWeights>& weights,
                             const RegressionOptions& options,
                             const Pass& pass) {
  const auto type = heads.q.scalar_type();
  at::Tensor log_marginal, v = heads.v, ratio, factor;
  if (weights) log_marginal = weights->log_marginal.to(type);
  const LogKernel kernel =
      log_kernel(heads.q, normalized_keys(heads.k), metric, log_marginal, options.kernel_scale);
  if (weights) {
    // In double, from the rounded marginal: what rounding does to it cancels above the fraction.
    ratio = (weights->log_joint.to(at::kDouble) - log_marginal.to(at::kDouble)).exp().to(type);
    factor = weights->factor.unsqueeze(-1);  // (B|1, H|1, N|1, 1)
    v = v * ratio.unsqueeze(-1);
  }
  const HeadMixer::Heads widened{kernel.q, kernel.k, v, heads.v_new};
  const AttendOptions call{
      .scale = kernel.scale, .dropout = options.dropout, .leaves_trace = false};
  // Of the heads that the layer was given, not of the widened ones.
  const auto map = [&] {
    const at::Tensor weights_of_keys = attention_map(widened, {}, call, pass);
    return weights ? weights_of_keys * (ratio.unsqueeze(-2) * factor) : weights_of_keys;
  };
  leave_trace(heads, metric, map, pass);
  const at::Tensor out = attend(widened, {}, call, pass);
  return weights ? out * factor : out;
}

}  // namespace elliptical::nn
