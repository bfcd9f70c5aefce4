// SPDX-License-Identifier: MIT
#include "elliptical/nn/block.h"

#include <torch/torch.h>

#include "elliptical/nn/dropout.h"
#include "elliptical/ops/residual_norm.h"

namespace elliptical::nn {
namespace {

at::Tensor add_and_norm(const at::Tensor& x,
                        const std::optional<at::Tensor>& bias,
                        const at::Tensor& residual,
                        const Norm& norm,
                        ops::ElementDropout dropout) {
  return ops::residual_dropout_norm(x, bias, residual, {norm.weight, norm.bias, norm.eps}, dropout);
}

}  // namespace

PostNormBlock::PostNormBlock(std::shared_ptr<Attention> attention,
                             int64_t dim,
                             int64_t feedforward_dim,
                             double dropout)
    : attn_(register_module("attn", std::move(attention))),
      norm1_(register_module("norm1", std::make_shared<Norm>(dim))),
      mlp_(register_module("mlp", std::make_shared<Mlp>(dim, feedforward_dim, dropout))),
      norm2_(register_module("norm2", std::make_shared<Norm>(dim))),
      dropout_(dropout) {}

at::Tensor PostNormBlock::forward(const at::Tensor& x,
                                  AttentionContext& context,
                                  int64_t num_last) {
  const auto last = [&](const at::Tensor& all) {
    const int64_t N = all.size(1);
    return num_last > 0 && num_last < N ? all.narrow(1, N - num_last, num_last).contiguous() : all;
  };
  const at::Tensor attended =
      add_and_norm(last(attn_->forward(x, context)), {}, last(x), *norm1_,
                   element_dropout(context, dropout_, "attention output dropout"));
  return add_and_norm(mlp_->forward(attended, context), mlp_->out_bias(), attended, *norm2_,
                      element_dropout(context, dropout_, "feedforward output dropout"));
}

}  // namespace elliptical::nn
