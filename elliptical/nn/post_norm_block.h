// SPDX-License-Identifier: MIT
//
// A transformer block with the norm after the residual sum, as in the paper's language model:
//
//   x1 = norm1(x + drop(attn(x)))
//   x2 = norm2(x1 + drop(mlp(x1)))
#pragma once

#include <memory>
#include <vector>

#include "elliptical/nn/attention/attention.h"
#include "elliptical/nn/feedforward/feed_forward.h"
#include "elliptical/nn/norm.h"

namespace elliptical::nn {

class PostNormBlock : public torch::nn::Module {
 public:
  PostNormBlock(std::shared_ptr<Attention> attention,
                std::shared_ptr<FeedForward> mlp,
                int64_t dim,
                double dropout);

  /// (B, N, C) -> (B, N, C); the layer that runs is pass.layer. With `num_last` > 0 only the
  /// last so many tokens come out: of a last layer, where nobody reads the others. Behind attention
  /// the others are left out, unless the mlp reads them.
  at::Tensor forward(const at::Tensor& x, Pass& pass, int64_t num_last = 0);
  const Attention& attention() const { return *attn_; }
  const FeedForward& feed_forward() const { return *mlp_; }

 private:
  std::shared_ptr<Attention> attn_;
  std::shared_ptr<Norm> norm1_;
  std::shared_ptr<FeedForward> mlp_;
  std::shared_ptr<Norm> norm2_;
  double dropout_;
};

/// x through all blocks, one after the other; of the last one, the last `num_last` tokens (0: all).
/// The layers count on from pass.layer: the model begins with the first (Pass::begin_layers).
at::Tensor run_blocks(const std::vector<std::shared_ptr<PostNormBlock>>& blocks,
                      at::Tensor x,
                      Pass& pass,
                      int64_t num_last = 0);

}  // namespace elliptical::nn
