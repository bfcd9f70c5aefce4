// SPDX-License-Identifier: MIT
//
// The position-wise network of a block: W2 drop(relu(W1 x + b1)). Its last bias is added by the
// block, together with dropout, residual and norm, in one pass.
#pragma once

#include "elliptical/nn/linear.h"
#include "elliptical/nn/pass.h"

namespace elliptical::nn {

class Mlp : public torch::nn::Module {
 public:
  Mlp(int64_t dim, int64_t hidden_dim, double dropout);

  /// x (B, N, C) -> (B, N, C), without out_bias().
  at::Tensor forward(const at::Tensor& x, const Pass& pass) const;
  const at::Tensor& out_bias() const { return fc2_->bias; }

 private:
  std::shared_ptr<Linear> fc1_, fc2_;
  double dropout_;
};

}  // namespace elliptical::nn
