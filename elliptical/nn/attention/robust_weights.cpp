// SPDX-License-Identifier: MIT
#include "elliptical/nn/attention/robust_weights.h"

#include <torch/torch.h>

#include <cmath>

#include "elliptical/nn/attention/kernel_density.h"
#include "elliptical/ops/attention.h"

namespace elliptical::nn {
namespace {

/// Below it Hampel's psi would be 0, and a log of it -inf.
constexpr double kFloor = 0.01;

/// log psi of log d.
at::Tensor log_psi(const at::Tensor& log_distance, const RobustWeightOptions& options) {
  const double a = options.threshold;
  const at::Tensor huber = (std::log(a) - log_distance).clamp_max(0.0);
  if (options.loss == RobustLoss::kHuber) return huber;
  // (c - d) / (c - b) with b = 2a, c = 3a: above 1 before b, negative behind c.
  const at::Tensor descent = ((3.0 * a - log_distance.exp()) / a).clamp(1e-6, 1.0);
  return (huber + descent.log()).clamp_min(std::log(kFloor));
}

}  // namespace

std::string to_string(RobustLoss loss) { return loss == RobustLoss::kHuber ? "huber" : "hampel"; }

RobustLoss robust_loss(const std::string& name) {
  return name == "huber" ? RobustLoss::kHuber : RobustLoss::kHampel;
}

at::Tensor density_distances(const at::Tensor& x,
                             const at::Tensor& log_weights,
                             const RobustWeightOptions& options) {
  const at::Tensor energy = x.square().sum(-1) * options.kernel_scale;  // (B, H, M)
  const LogKernel kernel = log_kernel(x, x, {}, log_weights - energy, options.kernel_scale);
  const at::Tensor row_lse = std::get<1>(ops::attention_with_lse(
      kernel.q, kernel.k, x.narrow(-1, 0, 1), {},
      {.is_causal = options.prefix, .scale = kernel.scale, .key_lengths = options.lengths}));
  const at::Tensor sums = (row_lse - energy).exp();  // (G w)_j, 0 for padding

  at::Tensor weights = log_weights.exp();
  if (options.lengths) {
    const at::Tensor real = at::arange(x.size(2)) < options.lengths->unsqueeze(-1);  // (B, M)
    weights = weights * real.unsqueeze(1);
  }
  at::Tensor total, product;  // W and w^T G w, (B, H, 1|M)
  if (options.prefix) {
    total = weights.cumsum(-1);
    product = (2.0 * weights * sums - weights.square()).cumsum(-1);
  } else {
    total = weights.sum(-1, /*keepdim=*/true);
    product = (weights * sums).sum(-1, /*keepdim=*/true);
  }
  total = at::where(total > 0, total, 1.0);  // a sequence of padding alone
  return (1.0 - 2.0 * sums / total + product / total.square()).clamp_min(1e-12);
}

at::Tensor robust_log_weights(const at::Tensor& x, const RobustWeightOptions& options) {
  at::Tensor log_weights = at::zeros({x.size(0), x.size(1), x.size(2)}, x.options());
  for (int64_t i = 0; i < options.num_iterations; ++i) {
    log_weights = log_psi(0.5 * density_distances(x, log_weights, options).log(), options);
  }
  return log_weights;
}

}  // namespace elliptical::nn
