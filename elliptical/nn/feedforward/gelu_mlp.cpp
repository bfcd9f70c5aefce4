// SPDX-License-Identifier: MIT
#include "elliptical/nn/feedforward/gelu_mlp.h"

#include <torch/torch.h>

#include "elliptical/nn/dropout.h"
#include "elliptical/ops/gelu_feed_forward.h"

namespace elliptical::nn {

GeluMlp::GeluMlp(int64_t dim, int64_t hidden_dim, double dropout)
    : fc1_(register_module("fc1", std::make_shared<Linear>(dim, hidden_dim, true))),
      fc2_(register_module("fc2", std::make_shared<Linear>(hidden_dim, dim, true))),
      dropout_(dropout) {}

at::Tensor GeluMlp::forward(const at::Tensor& x, Pass& pass) {
  const ops::ElementDropout dropout = element_dropout(pass, dropout_, "feedforward dropout");
  if (dropout.p > 0.0) return fc2_->forward(drop(at::gelu(fc1_->forward(x)), dropout));
  return ops::gelu_feed_forward(x, {fc1_->weight, fc1_->bias, fc2_->weight, fc2_->bias});
}

std::optional<ops::NormedSum> GeluMlp::forward_between(const at::Tensor& x,
                                                       const at::Tensor& mixed,
                                                       const Norm& before,
                                                       const Norm& after,
                                                       const Pass& pass) {
  if (pass.training && dropout_ > 0.0) return std::nullopt;
  return ops::normed_feed_forward(mixed, x, {before.weight, before.bias, before.eps},
                                  {fc1_->weight, fc1_->bias, fc2_->weight, fc2_->bias},
                                  {after.weight, after.bias, after.eps});
}

}  // namespace elliptical::nn
