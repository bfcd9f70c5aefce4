// SPDX-License-Identifier: MIT
//
// The feed-forward layer of vision transformers: W2 drop(gelu(W1 x + b1)) + b2 with the exact GELU,
// gelu(x) = x (1 + erf(x / sqrt(2))) / 2.
#pragma once

#include "elliptical/nn/feedforward/feed_forward.h"
#include "elliptical/nn/linear.h"

namespace elliptical::nn {

class GeluMlp : public FeedForward {
 public:
  GeluMlp(int64_t dim, int64_t hidden_dim, double dropout = 0.0);

  at::Tensor forward(const at::Tensor& x, Pass& pass) override;
  std::optional<ops::NormedSum> forward_between(const at::Tensor& x,
                                                const at::Tensor& mixed,
                                                const Norm& before,
                                                const Norm& after,
                                                const Pass& pass) override;

 private:
  std::shared_ptr<Linear> fc1_, fc2_;
  double dropout_;
};

}  // namespace elliptical::nn
