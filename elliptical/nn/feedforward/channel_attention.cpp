// SPDX-License-Identifier: MIT
#include "elliptical/nn/feedforward/channel_attention.h"

#include <torch/torch.h>

namespace elliptical::nn {

DepthwiseMlp::DepthwiseMlp(int64_t dim, int64_t hidden_dim, int64_t side)
    : side_(side),
      fc1_(register_module("fc1", std::make_shared<Linear>(dim, hidden_dim, true))),
      fc2_(register_module("fc2", std::make_shared<Linear>(hidden_dim, dim, true))),
      gamma_(register_parameter("gamma", torch::ones({hidden_dim}))) {
  auto dwconv = register_module("dwconv", std::make_shared<torch::nn::Module>());
  const Convolution::Options depthwise{.padding = 1, .groups = hidden_dim};
  const auto make = [&] {
    return std::make_shared<Convolution>(hidden_dim, hidden_dim, 3, depthwise);
  };
  conv1_ = dwconv->register_module("conv1", make());
  bn_ = dwconv->register_module("bn", std::make_shared<BatchNorm>(hidden_dim));
  conv2_ = dwconv->register_module("conv2", make());
}

at::Tensor DepthwiseMlp::forward(const at::Tensor& x, bool training) const {
  const at::Tensor z = fc1_->forward(x);
  const at::Tensor map = at::gelu(conv1_->forward(map_of_tokens(z, side_)));
  const at::Tensor near = tokens_of_map(conv2_->forward(bn_->forward(map, training)));
  return fc2_->forward(z + near * gamma_);
}

ChannelAttention::ChannelAttention(int64_t dim, int64_t num_heads, int64_t hidden_dim, int64_t side)
    : num_heads_(num_heads),
      temperature_(register_parameter("temperature", torch::ones({num_heads, 1, 1}))),
      mlp_v_(register_module("mlp_v", std::make_shared<DepthwiseMlp>(dim, hidden_dim, side))),
      norm_v_(register_module("norm_v", std::make_shared<Norm>(dim))),
      q_(register_module("q", std::make_shared<Linear>(dim, dim, true))) {}

FeedForwardCost ChannelAttention::cost(const FeedForwardShape& shape) {
  FeedForwardCost cost = mlp_cost(shape);
  const auto C = static_cast<double>(shape.dim), F = static_cast<double>(shape.hidden_dim);
  const double beside = C * C + 18 * F;  // q, two depthwise kernels
  cost.num_weights += beside;
  cost.products += beside;
  return cost;  // norms, kernels and gates keep some more, which is not counted
}

at::Tensor ChannelAttention::gates(const at::Tensor& x) const {
  const auto heads = [&](const at::Tensor& t) {  // (B, N, C) -> (B, H, N, c)
    return t.view({t.size(0), t.size(1), num_heads_, -1}).transpose(1, 2);
  };
  const at::Tensor a = heads(q_->forward(x)).softmax(2);
  const at::Tensor k = heads(x).softmax(2).mean(-1, /*keepdim=*/true);
  return a.transpose(2, 3).matmul(k).sigmoid();
}

at::Tensor ChannelAttention::forward(const at::Tensor& x, Pass& pass) {
  const at::Tensor gate = (gates(x) * temperature_).reshape({x.size(0), 1, x.size(2)});
  return norm_v_->forward(mlp_v_->forward(x, pass.training)) * gate;
}

}  // namespace elliptical::nn
