// SPDX-License-Identifier: MIT
#include "elliptical/nn/pre_norm_block.h"

#include <torch/torch.h>

#include "elliptical/nn/drop_path.h"
#include "elliptical/ops/residual_norm.h"

namespace elliptical::nn {
namespace {

/// x + factors * gamma * branch, and its norm.
ResidualStream add_and_norm(const at::Tensor& x,
                            const at::Tensor& branch,
                            const at::Tensor& gamma,
                            const std::optional<at::Tensor>& factors,
                            const Norm* norm) {
  const at::Tensor scaled = gamma.defined() ? branch * gamma : branch;
  if (norm == nullptr) {
    return {x + (factors ? scaled * factors->view({-1, 1, 1}) : scaled), at::Tensor()};
  }
  const auto [sum, normed] =
      ops::residual_norm(scaled, x, factors, {norm->weight, norm->bias, norm->eps});
  return {sum, normed};
}

}  // namespace

PreNormBlock::PreNormBlock(std::shared_ptr<Attention> attention,
                           std::shared_ptr<FeedForward> mlp,
                           int64_t dim,
                           Options options)
    : norm1_(register_module("norm1", std::make_shared<Norm>(dim, kPreNormEps))),
      attn_(register_module("attn", std::move(attention))),
      norm2_(register_module("norm2", std::make_shared<Norm>(dim, kPreNormEps))),
      mlp_(register_module("mlp", std::move(mlp))),
      drop_path_(options.drop_path) {
  if (options.scale_branches) {
    gamma1_ = register_parameter("gamma1", torch::ones({dim}));
    gamma2_ = register_parameter("gamma2", torch::ones({dim}));
  }
}

ResidualStream PreNormBlock::forward(const ResidualStream& in,
                                     const Norm* next,
                                     Pass& pass,
                                     std::optional<int64_t> num_kept) {
  if (mlp_->is_tokenwise()) pass.num_kept = num_kept;
  at::Tensor x = in.x, mixed = attn_->forward(in.normed, pass);
  pass.num_kept.reset();
  // An mlp that reads all tokens needs the others, too.
  const bool keeps_all = !num_kept || !mlp_->is_tokenwise();
  if (!keeps_all) {
    x = x.narrow(1, 0, *num_kept);
    mixed = mixed.narrow(1, 0, *num_kept);
  }
  const auto factors1 = drop_path_factors(x, drop_path_, pass, "attention path");
  const auto factors2 = drop_path_factors(x, drop_path_, pass, "feedforward path");
  const bool are_branches_plain = !gamma1_.defined() && !factors1 && !factors2;
  ResidualStream out;
  std::optional<ops::NormedSum> in_one_pass;
  if (are_branches_plain && next != nullptr) {
    in_one_pass = mlp_->forward_between(x, mixed, *norm2_, *next, pass);
  }
  if (in_one_pass) {
    out = {in_one_pass->sum, in_one_pass->normed};
  } else {
    const ResidualStream middle = add_and_norm(x, mixed, gamma1_, factors1, norm2_.get());
    at::Tensor branch = mlp_->forward(middle.normed, pass);
    if (const at::Tensor bias = mlp_->out_bias(); bias.defined()) branch = branch + bias;
    out = add_and_norm(middle.x, branch, gamma2_, factors2, next);
  }
  if (num_kept && keeps_all) {
    out.x = out.x.narrow(1, 0, *num_kept);
    if (out.normed.defined()) out.normed = out.normed.narrow(1, 0, *num_kept);
  }
  pass.keep(Traced::kResidual, out.x);
  return out;
}

ResidualStream run_blocks(const std::vector<std::shared_ptr<PreNormBlock>>& blocks,
                          const at::Tensor& x,
                          const Norm* last,
                          Pass& pass,
                          std::optional<int64_t> num_kept) {
  ResidualStream stream{.x = x, .normed = blocks.front()->norm1().forward(x)};
  for (size_t i = 0; i < blocks.size(); ++i) {
    const bool is_last = i + 1 == blocks.size();
    const Norm* next = is_last ? last : &blocks[i + 1]->norm1();
    stream = blocks[i]->forward(stream, next, pass, is_last ? num_kept : std::nullopt);
    ++pass.layer;
  }
  return stream;
}

}  // namespace elliptical::nn
