// SPDX-License-Identifier: MIT
//
// The feed-forward layer of RVT: with bn batch norms and dw a depthwise 3 x 3 convolution on the
// map of tokens,
//
//   bn3(W2 gelu(bn2(dw(gelu(bn1(W1 x))))))
//
// W1 and W2 are stored as the convolutions with kernel 1 that they are.
#pragma once

#include "elliptical/nn/convolution.h"
#include "elliptical/nn/feedforward/feed_forward.h"

namespace elliptical::nn {

class ConvMlp : public FeedForward {
 public:
  /// For maps of side x side tokens.
  ConvMlp(int64_t dim, int64_t hidden_dim, int64_t side);

  at::Tensor forward(const at::Tensor& x, Pass& pass) override;
  bool is_tokenwise() const override { return false; }
  static FeedForwardCost cost(const FeedForwardShape& shape);

 private:
  int64_t side_;
  std::shared_ptr<Convolution> fc1_, dwconv_, fc2_;
  std::shared_ptr<BatchNorm> bn1_, bn2_, bn3_;
};

}  // namespace elliptical::nn
