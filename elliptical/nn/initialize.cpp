// SPDX-License-Identifier: MIT
#include "elliptical/nn/initialize.h"

#include <torch/torch.h>

#include <cmath>
#include <numbers>

namespace elliptical::nn {

void fill_normal(at::Tensor& tensor, double mean, double std, RandomKey key) {
  TORCH_CHECK(tensor.is_contiguous() && tensor.scalar_type() == at::kFloat,
              "fill_normal: tensor must be contiguous float, got ", tensor.scalar_type());
  float* const to = tensor.mutable_data_ptr<float>();
  const int64_t count = tensor.numel();
  RandomStream random(key);
  for (int64_t i = 0; i < count; i += 2) {
    // Box-Muller: two independent normals from two uniforms, the first of them not 0.
    const double radius = std * std::sqrt(-2.0 * std::log(1.0 - random.uniform()));
    const double angle = 2.0 * std::numbers::pi * random.uniform();
    to[i] = static_cast<float>(mean + radius * std::cos(angle));
    if (i + 1 < count) to[i + 1] = static_cast<float>(mean + radius * std::sin(angle));
  }
}

}  // namespace elliptical::nn
