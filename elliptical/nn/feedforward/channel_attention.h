// SPDX-License-Identifier: MIT
//
// The channel mixing of FAN (Zhou et al., ICML 2022): a gate for each channel, from where in the
// picture the channels look, times a convolutional feed-forward layer. For u (B, N, C), H heads of
// c = C / H channels:
//
//   a = softmax over tokens of (Wq u + bq)                         (B, H, N, c)
//   k = mean over the c channels of softmax over tokens of u       (B, H, N, 1)
//   g = tau_h sigmoid(a^T k)                                       (B, H, c, 1)
//   y = g * norm_v(mlp_v(u))
//   mlp_v(u) = W2 (z + gamma * dw2(bn(gelu(dw1(z))))) + b2,  z = W1 u + b1
//
// dw1 and dw2 are depthwise 3 x 3 convolutions on the map of tokens. a^T k is a product of two
// probability vectors, so g / tau lies between sigmoid(0) and sigmoid(1).
#pragma once

#include "elliptical/nn/convolution.h"
#include "elliptical/nn/feedforward/feed_forward.h"
#include "elliptical/nn/linear.h"
#include "elliptical/nn/norm.h"

namespace elliptical::nn {

/// mlp_v.
class DepthwiseMlp : public torch::nn::Module {
 public:
  DepthwiseMlp(int64_t dim, int64_t hidden_dim, int64_t side);
  at::Tensor forward(const at::Tensor& x, bool training) const;

 private:
  int64_t side_;
  std::shared_ptr<Linear> fc1_, fc2_;
  std::shared_ptr<Convolution> conv1_, conv2_;
  std::shared_ptr<BatchNorm> bn_;
  at::Tensor gamma_;  ///< (hidden), starts at 1
};

class ChannelAttention : public FeedForward {
 public:
  /// For maps of side x side tokens.
  ChannelAttention(int64_t dim, int64_t num_heads, int64_t hidden_dim, int64_t side);

  at::Tensor forward(const at::Tensor& x, Pass& pass) override;
  bool is_tokenwise() const override { return false; }
  static FeedForwardCost cost(const FeedForwardShape& shape);
  /// sigmoid(a^T k), (B, H, c, 1).
  at::Tensor gates(const at::Tensor& x) const;

 private:
  int64_t num_heads_;
  at::Tensor temperature_;  ///< tau, (H, 1, 1), starts at 1
  std::shared_ptr<DepthwiseMlp> mlp_v_;
  std::shared_ptr<Norm> norm_v_;
  std::shared_ptr<Linear> q_;
};

}  // namespace elliptical::nn
