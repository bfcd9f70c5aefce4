// SPDX-License-Identifier: MIT
//
// Adam and AdamW in one pass over parameters, gradients and moments; gradient clipping is a factor.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace elliptical::ops {

struct AdamStep {
  double learning_rate = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double weight_decay = 0.0;    ///< decoupled (AdamW): parameters shrink by learning_rate * this
  double gradient_scale = 1.0;  ///< gradients are multiplied by it first
  int64_t step = 1;             ///< 1 for the first update: bias correction
};

/// Updates parameters and moments in place; all four lists run in parallel, float32 contiguous.
/// Same bits for any thread count.
void adam_step(const std::vector<at::Tensor>& parameters,
               const std::vector<at::Tensor>& gradients,
               const std::vector<at::Tensor>& exp_avg,
               const std::vector<at::Tensor>& exp_avg_sq,
               const AdamStep& options);

/// sqrt(sum of squares) of all gradients, summed in double in a fixed order.
double gradient_norm(const std::vector<at::Tensor>& gradients);

}  // namespace elliptical::ops
