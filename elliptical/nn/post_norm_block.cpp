// SPDX-License-Identifier: MIT
#include "elliptical/nn/post_norm_block.h"

#include <torch/torch.h>

#include "elliptical/nn/dropout.h"
#include "elliptical/ops/residual_norm.h"

namespace elliptical::nn {
namespace {

at::Tensor add_and_norm(const at::Tensor& x,
                        const at::Tensor& bias,
                        const at::Tensor& residual,
                        const Norm& norm,
                        ops::ElementDropout dropout) {
  const auto given_bias = bias.defined() ? std::optional(bias) : std::nullopt;
  return ops::residual_dropout_norm(x, given_bias, residual, {norm.weight, norm.bias, norm.eps},
                                    dropout);
}

}  // namespace

PostNormBlock::PostNormBlock(std::shared_ptr<Attention> attention,
                             std::shared_ptr<FeedForward> mlp,
                             int64_t dim,
                             double dropout)
    : attn_(register_module("attn", std::move(attention))),
      norm1_(register_module("norm1", std::make_shared<Norm>(dim))),
      mlp_(register_module("mlp", std::move(mlp))),
      norm2_(register_module("norm2", std::make_shared<Norm>(dim))),
      dropout_(dropout) {}

at::Tensor PostNormBlock::forward(const at::Tensor& x, Pass& pass, int64_t num_last) {
  const auto last = [&](const at::Tensor& all) {
    const int64_t N = all.size(1);
    return num_last > 0 && num_last < N ? all.narrow(1, N - num_last, num_last).contiguous() : all;
  };
  const bool keeps_all = !mlp_->is_tokenwise();
  const auto read = [&](const at::Tensor& all) { return keeps_all ? all : last(all); };
  const at::Tensor attended =
      add_and_norm(read(attn_->forward(x, pass)), {}, read(x), *norm1_,
                   element_dropout(pass, dropout_, "attention output dropout"));
  at::Tensor out = add_and_norm(mlp_->forward(attended, pass), mlp_->out_bias(), attended, *norm2_,
                                element_dropout(pass, dropout_, "feedforward output dropout"));
  if (keeps_all) out = last(out);
  pass.keep(Traced::kResidual, out);
  return out;
}

at::Tensor run_blocks(const std::vector<std::shared_ptr<PostNormBlock>>& blocks,
                      at::Tensor x,
                      Pass& pass,
                      int64_t num_last) {
  for (const auto& block : blocks) {
    x = block->forward(x, pass, block == blocks.back() ? num_last : 0);
    ++pass.layer;
  }
  return x;
}

}  // namespace elliptical::nn
