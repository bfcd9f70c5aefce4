// SPDX-License-Identifier: MIT
#include "elliptical/nn/feedforward/conv_mlp.h"

#include <torch/torch.h>

namespace elliptical::nn {

ConvMlp::ConvMlp(int64_t dim, int64_t hidden_dim, int64_t side) : side_(side) {
  using Options = Convolution::Options;
  const auto convolution = [&](const char* name, int64_t in, int64_t out, int64_t kernel,
                               Options options) {
    return register_module(name, std::make_shared<Convolution>(in, out, kernel, options));
  };
  const auto norm = [&](const char* name, int64_t channels) {
    return register_module(name, std::make_shared<BatchNorm>(channels));
  };
  fc1_ = convolution("fc1", dim, hidden_dim, 1, {});
  bn1_ = norm("bn1", hidden_dim);
  dwconv_ = convolution("dwconv", hidden_dim, hidden_dim, 3, {.padding = 1, .groups = hidden_dim});
  bn2_ = norm("bn2", hidden_dim);
  fc2_ = convolution("fc2", hidden_dim, dim, 1, {});
  bn3_ = norm("bn3", dim);
}

FeedForwardCost ConvMlp::cost(const FeedForwardShape& shape) {
  FeedForwardCost cost = mlp_cost(shape);
  const double kernels = 9 * static_cast<double>(shape.hidden_dim);
  cost.num_weights += kernels;
  cost.products += kernels;
  return cost;  // norms and kernels keep some more, which is not counted
}

at::Tensor ConvMlp::forward(const at::Tensor& x, Pass& pass) {
  const bool training = pass.training;
  const at::Tensor hidden = at::gelu(bn1_->on_tokens(fc1_->on_tokens(x), training));
  const at::Tensor map = dwconv_->forward(map_of_tokens(hidden, side_));
  const at::Tensor mixed = at::gelu(bn2_->forward(map, training));
  return bn3_->on_tokens(fc2_->on_tokens(tokens_of_map(mixed)), training);
}

}  // namespace elliptical::nn
