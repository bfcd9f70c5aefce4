// SPDX-License-Identifier: MIT
#include "elliptical/nn/linear.h"

#include <torch/torch.h>

#include "elliptical/ops/linear.h"

namespace elliptical::nn {

Linear::Linear(int64_t in_dim, int64_t out_dim, bool with_bias)
    : weight(register_parameter("weight", torch::empty({out_dim, in_dim}))) {
  if (with_bias) bias = register_parameter("bias", torch::empty({out_dim}));
}

at::Tensor Linear::forward(const at::Tensor& x) const {
  return bias.defined() ? ops::linear(x, weight, bias) : product(x);
}

at::Tensor Linear::product(const at::Tensor& x) const { return at::linear(x, weight); }

}  // namespace elliptical::nn
