// SPDX-License-Identifier: MIT
//
// Weight and bias of a layer norm over the last dimension. Blocks that fuse the norm with what
// comes before read them; others call forward.
#pragma once

#include <torch/nn/module.h>

namespace elliptical::nn {

class Norm : public torch::nn::Module {
 public:
  explicit Norm(int64_t dim, double eps = 1e-5);

  /// (..., C) -> (..., C).
  at::Tensor forward(const at::Tensor& x) const;

  at::Tensor weight, bias;  ///< (C)
  const double eps;
};

}  // namespace elliptical::nn
