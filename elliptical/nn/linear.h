// SPDX-License-Identifier: MIT
//
// y = x W^T (+ b), with parameters `weight` (out, in) and `bias` (out). Parameters start undefined
// in value: `initialize` (initialize.h) sets every one of them from the seed.
#pragma once

#include <torch/nn/module.h>

namespace elliptical::nn {

class Linear : public torch::nn::Module {
 public:
  Linear(int64_t in_dim, int64_t out_dim, bool with_bias);

  /// x (..., in) -> (..., out), bias included.
  at::Tensor forward(const at::Tensor& x) const;
  /// The product alone, for callers that add the bias in a fused step.
  at::Tensor product(const at::Tensor& x) const;

  at::Tensor weight;
  at::Tensor bias;  ///< undefined without one
};

}  // namespace elliptical::nn
