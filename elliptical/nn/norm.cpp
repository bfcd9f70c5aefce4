// SPDX-License-Identifier: MIT
#include "elliptical/nn/norm.h"

#include <torch/torch.h>

namespace elliptical::nn {

Norm::Norm(int64_t dim, double chosen_eps)
    : weight(register_parameter("weight", torch::empty({dim}))),
      bias(register_parameter("bias", torch::empty({dim}))),
      eps(chosen_eps) {}

at::Tensor Norm::forward(const at::Tensor& x) const {
  return at::layer_norm(x, {x.size(-1)}, weight, bias, eps);
}

}  // namespace elliptical::nn
