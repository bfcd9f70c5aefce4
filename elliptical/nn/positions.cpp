// SPDX-License-Identifier: MIT
#include "elliptical/nn/positions.h"

#include <torch/torch.h>

#include <cmath>

namespace elliptical::nn {

std::string_view to_string(Positions positions) {
  return positions == Positions::kForward ? "forward" : "reverse";
}

Positions positions_from(const std::string& name) {
  return name == "reverse" ? Positions::kReverse : Positions::kForward;
}

at::Tensor sinusoids(int64_t first, int64_t count, int64_t dim) {
  TORCH_CHECK_VALUE(dim % 2 == 0, "sinusoids: dim must be even, got ", dim);
  const at::Tensor p = at::arange(first, first + count, at::kDouble).unsqueeze(1);  // (count, 1)
  const at::Tensor f =
      (at::arange(0, dim, 2, at::kDouble) * (-std::log(10000.0) / static_cast<double>(dim))).exp();
  const at::Tensor angles = p * f;  // (count, C / 2)
  return at::cat({angles.sin(), angles.cos()}, 1);
}

}  // namespace elliptical::nn
