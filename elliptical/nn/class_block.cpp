// SPDX-License-Identifier: MIT
#include "elliptical/nn/class_block.h"

#include <torch/torch.h>

#include "elliptical/nn/pre_norm_block.h"
#include "elliptical/ops/attention.h"

namespace elliptical::nn {

ClassBlock::ClassBlock(int64_t dim, int64_t num_heads, std::shared_ptr<FeedForward> mlp)
    : num_heads_(num_heads),
      norm1_(register_module("norm1", std::make_shared<Norm>(dim, kPreNormEps))),
      norm2_(register_module("norm2", std::make_shared<Norm>(dim, kPreNormEps))),
      mlp_(register_module("mlp", std::move(mlp))),
      gamma1_(register_parameter("gamma1", torch::ones({dim}))),
      gamma2_(register_parameter("gamma2", torch::ones({dim}))) {
  auto attn = register_module("attn", std::make_shared<torch::nn::Module>());
  const auto linear = [&](const char* name) {
    return attn->register_module(name, std::make_shared<Linear>(dim, dim, true));
  };
  q_ = linear("q");
  k_ = linear("k");
  v_ = linear("v");
  proj_ = linear("proj");
}

at::Tensor ClassBlock::attend(const at::Tensor& normed) const {
  const auto heads = [&](const at::Tensor& t) {  // (B, N, C) -> (B, H, N, D)
    return t.view({t.size(0), t.size(1), num_heads_, -1}).transpose(1, 2);
  };
  const at::Tensor first = normed.narrow(1, 0, 1);
  const at::Tensor out = ops::attention(heads(q_->forward(first)), heads(k_->forward(normed)),
                                        heads(v_->forward(normed)), std::nullopt, {});
  return proj_->forward(out.transpose(1, 2).reshape(first.sizes()));
}

at::Tensor ClassBlock::forward(const at::Tensor& x, Pass& pass) const {
  const int64_t N = x.size(1) - 1;
  const at::Tensor n = norm1_->forward(x);
  const at::Tensor mixed = at::cat({attend(n), n.narrow(1, 1, N)}, 1);
  const at::Tensor middle = norm2_->forward(x + mixed * gamma1_);
  at::Tensor branch = mlp_->forward(middle.narrow(1, 0, 1), pass);
  if (const at::Tensor bias = mlp_->out_bias(); bias.defined()) branch = branch + bias;
  return middle + at::cat({branch * gamma2_, middle.narrow(1, 1, N)}, 1);
}

}  // namespace elliptical::nn
