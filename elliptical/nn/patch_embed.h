// SPDX-License-Identifier: MIT
//
// A picture as tokens: each patch of P x P pixels is one linear map of its 3 P^2 numbers. The map
// is stored as the weight of the convolution that it is, `proj.weight` (C, 3, P, P), `proj.bias`
// (C).
#pragma once

#include <torch/nn/module.h>

namespace elliptical::nn {

class PatchEmbed : public torch::nn::Module {
 public:
  PatchEmbed(int64_t patch_size, int64_t dim);

  /// (B, 3, H, W), H and W multiples of P -> (B, H W / P^2, C), patches row by row.
  at::Tensor forward(const at::Tensor& pixels) const;

 private:
  int64_t patch_size_;
  at::Tensor weight_, bias_;
};

}  // namespace elliptical::nn
