// SPDX-License-Identifier: MIT
//
// Weights of a robust kernel density estimate (Kim and Scott 2012): points far from the estimate in
// the kernel's feature space count less. With weights w (all 1 at first), W their sum and
// G_jl = exp(-s |x_j - x_l|^2), repeat
//
//   d_j^2 = 1 - 2 (G w)_j / W + w^T G w / W^2
//   w_j   = psi(d_j)
//
// G is never formed: (G w)_j is the sum of a row of attention of x with itself, which the fused op
// gives as a logsumexp, in O(N) memory and with its gradient. With `prefix` each point is judged
// once, among the points up to it: all sums over l run over l <= j, and w^T G w is a running sum
// of 2 w_j (G w)_j - w_j^2. So no weight depends on later points.
//
// The code released with robust transformers (Han et al., NeurIPS 2023) adds where the distance
// subtracts, d_j^2 = 1 + (G w)_j / W + w^T G w / W^2: points in the crowd count less, not outliers.
// Such a d is above 1, so with the usual thresholds Hampel's weights are all equal. Between
// iterations it averages weights over sequences and heads. RobustForm::kReleased is that.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>

namespace elliptical::nn {

/// Huber: psi(d) = min(1, a / d). Hampel: the same up to 2a, then down to 0 at 3a; at least 0.01,
/// in the released form only from 3a on.
enum class RobustLoss { kHuber, kHampel };
std::string to_string(RobustLoss loss);
RobustLoss robust_loss(const std::string& name);

/// The distance as in the literature, or as in the released code (above).
enum class RobustForm { kLiterature, kReleased };
std::string to_string(RobustForm form);
RobustForm robust_form(const std::string& name);

struct RobustWeightOptions {
  double kernel_scale = 1.0;  ///< s
  RobustForm form = RobustForm::kLiterature;
  RobustLoss loss = RobustLoss::kHuber;
  double threshold = 0.2;  ///< a
  int64_t num_iterations = 1;
  bool prefix = false;
  std::optional<at::Tensor> lengths;  ///< (B): points from there on do not count
};

/// d^2, (B, H, M), at least 1e-12. x (B, H, M, E), log_weights (B, H, M).
at::Tensor density_distances(const at::Tensor& x,
                             const at::Tensor& log_weights,
                             const RobustWeightOptions& options);

/// log w, (B, H, M), in (-inf, 0]. Differentiable.
at::Tensor robust_log_weights(const at::Tensor& x, const RobustWeightOptions& options);

}  // namespace elliptical::nn
