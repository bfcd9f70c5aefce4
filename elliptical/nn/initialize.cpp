// SPDX-License-Identifier: MIT
#include "elliptical/nn/initialize.h"

#include <torch/torch.h>

#include <cmath>
#include <numbers>

namespace elliptical::nn {

namespace {

void check(const char* function, const at::Tensor& tensor) {
  TORCH_CHECK(tensor.is_contiguous() && tensor.scalar_type() == at::kFloat, function,
              ": tensor must be contiguous float, got ", tensor.scalar_type());
}

}  // namespace

void fill_normal(at::Tensor& tensor, double mean, double std, RandomKey key) {
  check("fill_normal", tensor);
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

void fill_uniform(at::Tensor& tensor, double bound, RandomKey key) {
  check("fill_uniform", tensor);
  float* const to = tensor.mutable_data_ptr<float>();
  RandomStream random(key);
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    to[i] = static_cast<float>(bound * (2.0 * random.uniform() - 1.0));
  }
}

}  // namespace elliptical::nn
