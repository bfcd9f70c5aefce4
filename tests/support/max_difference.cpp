// SPDX-License-Identifier: MIT
#include "tests/support/max_difference.h"

#include <torch/torch.h>

#include <limits>

namespace elliptical::support {

double max_difference(const at::Tensor& a, const at::Tensor& b) {
  if (a.sizes() != b.sizes()) return std::numeric_limits<double>::infinity();
  if (a.numel() == 0) return 0.0;
  const at::Tensor x = a.to(torch::kDouble), y = b.to(torch::kDouble);
  const at::Tensor difference = torch::where(x == y, 0.0, (x - y).abs());
  return torch::where(difference.isnan(), std::numeric_limits<double>::infinity(), difference)
      .max()
      .item<double>();
}

}  // namespace elliptical::support
