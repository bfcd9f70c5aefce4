// SPDX-License-Identifier: MIT
#include "elliptical/nn/convolution.h"

#include <torch/torch.h>

namespace elliptical::nn {
namespace {

constexpr double kBatchNormEps = 1e-5, kMomentum = 0.1;

}  // namespace

Convolution::Convolution(int64_t in_channels, int64_t out_channels, int64_t kernel, Options options)
    : options_(options),
      weight_(register_parameter(
          "weight", torch::empty({out_channels, in_channels / options.groups, kernel, kernel}))) {
  if (options.with_bias) bias_ = register_parameter("bias", torch::empty({out_channels}));
}

at::Tensor Convolution::forward(const at::Tensor& map) const {
  return at::conv2d(map, weight_, bias_, options_.stride, options_.padding, /*dilation=*/1,
                    options_.groups);
}

at::Tensor Convolution::on_tokens(const at::Tensor& x) const {
  return at::linear(x, weight_.flatten(1), bias_);
}

BatchNorm::BatchNorm(int64_t channels)
    : weight_(register_parameter("weight", torch::empty({channels}))),
      bias_(register_parameter("bias", torch::empty({channels}))),
      running_mean_(register_buffer("running_mean", torch::zeros({channels}))),
      running_var_(register_buffer("running_var", torch::ones({channels}))) {}

at::Tensor BatchNorm::forward(const at::Tensor& map, bool training) const {
  return at::batch_norm(map, weight_, bias_, running_mean_, running_var_, training, kMomentum,
                        kBatchNormEps, /*cudnn_enabled=*/false);
}

at::Tensor BatchNorm::on_tokens(const at::Tensor& x, bool training) const {
  return forward(x.flatten(0, 1), training).view_as(x);
}

at::Tensor map_of_tokens(const at::Tensor& x, int64_t side) {
  return x.transpose(1, 2).reshape({x.size(0), x.size(2), side, side});
}

at::Tensor tokens_of_map(const at::Tensor& map) { return map.flatten(2).transpose(1, 2); }

}  // namespace elliptical::nn
