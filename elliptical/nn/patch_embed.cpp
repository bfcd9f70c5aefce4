// SPDX-License-Identifier: MIT
#include "elliptical/nn/patch_embed.h"

#include <torch/torch.h>

#include "elliptical/ops/linear.h"

namespace elliptical::nn {

PatchEmbed::PatchEmbed(int64_t patch_size, int64_t dim) : patch_size_(patch_size) {
  auto proj = register_module("proj", std::make_shared<torch::nn::Module>());
  weight_ = proj->register_parameter("weight", torch::empty({dim, 3, patch_size, patch_size}));
  bias_ = proj->register_parameter("bias", torch::empty({dim}));
}

at::Tensor PatchEmbed::forward(const at::Tensor& pixels) const {
  const int64_t B = pixels.size(0), P = patch_size_;
  const int64_t rows = pixels.size(2) / P, columns = pixels.size(3) / P;
  const at::Tensor patches = pixels.reshape({B, 3, rows, P, columns, P})
                                 .permute({0, 2, 4, 1, 3, 5})
                                 .reshape({B, rows * columns, 3 * P * P});
  return ops::linear(patches, weight_.flatten(1), bias_);
}

}  // namespace elliptical::nn
