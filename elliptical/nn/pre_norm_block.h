// SPDX-License-Identifier: MIT
//
// A transformer block with the norm before each branch, as in vision transformers:
//
//   x1 = x  + path(gamma1 * attn(norm1(x)))
//   x2 = x1 + path(gamma2 * mlp(norm2(x1)))
//
// path is stochastic depth (drop_path.h); gamma1 and gamma2 (C) are there in models that scale
// their branches. A sum and the norm after it are one pass over memory, so a block is handed its
// input with norm1 applied and applies the norm of whoever comes next.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "elliptical/nn/attention/attention.h"
#include "elliptical/nn/feedforward/feed_forward.h"
#include "elliptical/nn/norm.h"

namespace elliptical::nn {

inline constexpr double kPreNormEps = 1e-6;

/// Tokens between two branches, (B, N, C).
struct ResidualStream {
  at::Tensor x;       ///< the sum of all branches so far
  at::Tensor normed;  ///< the norm of x that the next branch reads
};

class PreNormBlock : public torch::nn::Module {
 public:
  struct Options {
    double drop_path = 0.0;
    bool scale_branches = false;  ///< gamma1 and gamma2, which start at 1
  };
  PreNormBlock(std::shared_ptr<Attention> attention,
               std::shared_ptr<FeedForward> mlp,
               int64_t dim,
               Options options);

  /// `in.normed` is norm1() of `in.x`; the result's is `next` of its x, nothing where that is null.
  /// The layer that runs is pass.layer. `num_kept`: only the first tokens come out, where the caller
  /// reads no others (the last block of a classifier); behind attention the others are left out,
  /// unless the mlp reads them.
  ResidualStream forward(const ResidualStream& in,
                         const Norm* next,
                         Pass& pass,
                         std::optional<int64_t> num_kept = std::nullopt);

  const Norm& norm1() const { return *norm1_; }
  const Attention& attention() const { return *attn_; }
  const FeedForward& feed_forward() const { return *mlp_; }

 private:
  std::shared_ptr<Norm> norm1_;
  std::shared_ptr<Attention> attn_;
  std::shared_ptr<Norm> norm2_;
  std::shared_ptr<FeedForward> mlp_;
  at::Tensor gamma1_, gamma2_;  ///< undefined without
  double drop_path_;
};

/// Tokens x through all blocks, one after the other. The result's `normed` is `last` of its x,
/// nothing where that is null; of the last block, the first `num_kept` tokens where it is given.
/// The layers count on from pass.layer: the model begins with the first (Pass::begin_layers).
ResidualStream run_blocks(const std::vector<std::shared_ptr<PreNormBlock>>& blocks,
                          const at::Tensor& x,
                          const Norm* last,
                          Pass& pass,
                          std::optional<int64_t> num_kept = std::nullopt);

}  // namespace elliptical::nn
