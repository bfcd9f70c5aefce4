// SPDX-License-Identifier: MIT
#include "elliptical/nn/feedforward/relu_mlp.h"

#include <torch/torch.h>

#include "elliptical/nn/dropout.h"
#include "elliptical/ops/feed_forward.h"

namespace elliptical::nn {

ReluMlp::ReluMlp(int64_t dim, int64_t hidden_dim, double dropout)
    : fc1_(register_module("fc1", std::make_shared<Linear>(dim, hidden_dim, true))),
      fc2_(register_module("fc2", std::make_shared<Linear>(hidden_dim, dim, true))),
      dropout_(dropout) {}

at::Tensor ReluMlp::forward(const at::Tensor& x, Pass& pass) {
  return ops::feed_forward(x, {fc1_->weight, fc1_->bias, fc2_->weight},
                           element_dropout(pass, dropout_, "feedforward dropout"));
}

}  // namespace elliptical::nn
