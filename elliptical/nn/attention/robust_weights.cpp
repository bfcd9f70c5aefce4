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
  const at::Tensor distance = log_distance.exp();
  const at::Tensor falling = huber + ((3.0 * a - distance) / a).clamp(1e-6, 1.0).log();
  if (options.form == RobustForm::kLiterature) return falling.clamp_min(std::log(kFloor));
  return at::where(distance < 3.0 * a, falling, std::log(kFloor));
}

/// (B, M) true for points that are no padding; undefined without lengths.
at::Tensor real_points(const at::Tensor& x, const RobustWeightOptions& options) {
  if (!options.lengths) return {};
  return at::arange(x.size(2)) < options.lengths->unsqueeze(-1);
}

/// What the released code starts its next iteration from: weights that add up to 1 in each sequence
/// and head, averaged over them.
at::Tensor averaged(const at::Tensor& log_weights,
                    const at::Tensor& x,
                    const RobustWeightOptions& options) {
  at::Tensor weights = log_weights.exp();
  if (const at::Tensor real = real_points(x, options); real.defined()) {
    weights = weights * real.unsqueeze(1);
  }
  const at::Tensor sum = weights.sum(-1, /*keepdim=*/true);
  const at::Tensor shares = weights / at::where(sum > 0, sum, 1.0);
  return shares.mean({0, 1}, /*keepdim=*/true).clamp_min(1e-30).log().expand_as(log_weights);
}

}  // namespace

std::string to_string(RobustLoss loss) { return loss == RobustLoss::kHuber ? "huber" : "hampel"; }

RobustLoss robust_loss(const std::string& name) {
  return name == "huber" ? RobustLoss::kHuber : RobustLoss::kHampel;
}

std::string to_string(RobustForm form) {
  return form == RobustForm::kLiterature ? "literature" : "released";
}

RobustForm robust_form(const std::string& name) {
  return name == "literature" ? RobustForm::kLiterature : RobustForm::kReleased;
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
  if (const at::Tensor real = real_points(x, options); real.defined()) {
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
  const double sign = options.form == RobustForm::kLiterature ? -2.0 : 1.0;
  return (1.0 + sign * sums / total + product / total.square()).clamp_min(1e-12);
}

at::Tensor robust_log_weights(const at::Tensor& x, const RobustWeightOptions& options) {
  at::Tensor log_weights = at::zeros({x.size(0), x.size(1), x.size(2)}, x.options());
  for (int64_t i = 0; i < options.num_iterations; ++i) {
    if (i > 0 && options.form == RobustForm::kReleased) {
      log_weights = averaged(log_weights, x, options);
    }
    log_weights = log_psi(0.5 * density_distances(x, log_weights, options).log(), options);
  }
  return log_weights;
}

}  // namespace elliptical::nn
