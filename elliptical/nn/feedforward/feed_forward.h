// SPDX-License-Identifier: MIT
//
// The contract of what stands in the second branch of a block: tokens (B, N, C) in, tokens out. It
// mixes the channels of each token, and in some models neighbouring tokens too. Those of the table
// can stand in any block; others are parts of one model (conv_mlp.h, channel_attention.h).
#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <optional>
#include <vector>

#include "elliptical/base/options.h"
#include "elliptical/nn/norm.h"
#include "elliptical/nn/pass.h"
#include "elliptical/ops/residual_norm.h"

namespace elliptical::nn {

class FeedForward : public torch::nn::Module {
 public:
  /// x (B, N, C) -> (B, N, C) without out_bias(), before the residual connection.
  virtual at::Tensor forward(const at::Tensor& x, Pass& pass) = 0;
  /// A last bias (C) that the block adds, in one pass with what else it adds; undefined: none.
  virtual at::Tensor out_bias() const { return {}; }
  /// The branch between two norms in one pass, for those that can: with s = x + mixed,
  /// s + forward(norm `before` of s) and norm `after` of it.
  virtual std::optional<ops::NormedSum> forward_between(const at::Tensor& /*x*/,
                                                        const at::Tensor& /*mixed*/,
                                                        const Norm& /*before*/,
                                                        const Norm& /*after*/,
                                                        const Pass& /*pass*/) {
    return std::nullopt;
  }
  /// Whether a token's result depends on that token alone.
  virtual bool is_tokenwise() const { return true; }
};

/// What each of them is told about the model around it.
struct FeedForwardShape {
  int64_t dim = 0;  ///< C
  int64_t hidden_dim = 0;
  double dropout = 0.0;  ///< inside, in training
  int64_t layer = 0, num_layers = 1;
};

/// One line of the table.
struct FeedForwardEntry {
  const char* name;
  const char* description;  ///< one true sentence
  std::unique_ptr<Options> (*make_options)();
  std::shared_ptr<FeedForward> (*make)(const Options& options, const FeedForwardShape& shape);
};

/// All of them, sorted by name, and the same as choices for ChosenOptions.
const std::vector<FeedForwardEntry>& feed_forward_table();
const std::vector<OptionsEntry>& feed_forward_choices();

std::shared_ptr<FeedForward> make_feed_forward(const ChosenOptions& chosen,
                                               const FeedForwardShape& shape);

}  // namespace elliptical::nn
