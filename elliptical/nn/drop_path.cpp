// SPDX-License-Identifier: MIT
#include "elliptical/nn/drop_path.h"

#include <torch/torch.h>

namespace elliptical::nn {

std::optional<at::Tensor> drop_path_factors(const at::Tensor& branch,
                                            double p,
                                            const Pass& pass,
                                            std::string_view place) {
  if (!pass.training || p == 0.0) return std::nullopt;
  RandomStream random(RandomKey(static_cast<uint64_t>(pass.seed(place))));
  const at::Tensor factors = at::empty({branch.size(0)}, at::kDouble);
  double* const factor = factors.mutable_data_ptr<double>();
  for (int64_t b = 0; b < branch.size(0); ++b) {
    factor[b] = random.uniform() < p ? 0.0 : 1.0 / (1.0 - p);
  }
  return factors.to(branch.options());
}

}  // namespace elliptical::nn
