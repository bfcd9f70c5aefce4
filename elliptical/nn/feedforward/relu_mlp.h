// SPDX-License-Identifier: MIT
//
// The position-wise network of the paper's language model: W2 drop(relu(W1 x + b1)). Its last bias
// is added by the block, together with dropout, residual and norm, in one pass.
#pragma once

#include "elliptical/nn/feedforward/feed_forward.h"
#include "elliptical/nn/linear.h"

namespace elliptical::nn {

class ReluMlp : public FeedForward {
 public:
  ReluMlp(int64_t dim, int64_t hidden_dim, double dropout);

  at::Tensor forward(const at::Tensor& x, Pass& pass) override;
  at::Tensor out_bias() const override { return fc2_->bias; }

 private:
  std::shared_ptr<Linear> fc1_, fc2_;
  double dropout_;
};

}  // namespace elliptical::nn
