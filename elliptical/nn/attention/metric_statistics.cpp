// SPDX-License-Identifier: MIT
#include "elliptical/nn/attention/metric_statistics.h"

#include <torch/torch.h>

namespace elliptical::nn {

void MetricStatistics::add(int64_t layer, const at::Tensor& m) {
  const at::NoGradGuard no_grad;
  const at::Tensor rows = m.detach().to(at::kDouble);
  const at::Tensor mean = rows.mean(-1);  // (B, H, 1|N)
  const at::Tensor deviation = (rows - mean.unsqueeze(-1)).square().mean(-1).sqrt();
  // A row without any length has no shape either.
  const at::Tensor anisotropy = at::where(mean > 0, deviation / mean, 0.0);
  Layer& sums = layers_[layer];
  const at::Tensor coordinates = rows.sum({0, 2}), anisotropies = anisotropy.sum({0, 2});
  sums.coordinate_sums = sums.num_rows == 0 ? coordinates : sums.coordinate_sums + coordinates;
  sums.anisotropy_sums = sums.num_rows == 0 ? anisotropies : sums.anisotropy_sums + anisotropies;
  sums.num_rows += rows.size(0) * rows.size(2);
}

}  // namespace elliptical::nn
