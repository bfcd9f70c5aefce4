// SPDX-License-Identifier: MIT
//
// The contract of what stands in the second branch of a block: tokens (B, N, C) in, tokens out. It
// mixes the channels of each token, and in some models other tokens too. Those of the table can
// stand in any block and are chosen by options; others are parts of one model (conv_mlp.h,
// channel_attention.h). What a layer costs it says itself: nobody takes it for two linear maps.
#pragma once

#include <torch/nn/module.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
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
  /// Whether a token's result depends on that token alone. If not, blocks hand it all tokens.
  virtual bool is_tokenwise() const { return true; }
  /// Whether tokens can be fed one by one with the same result; the reason if not, which begins with
  /// the option that it is due to.
  virtual std::optional<std::string> why_no_streaming() const {
    if (is_tokenwise()) return std::nullopt;
    return "name is of a layer that reads several tokens at once (train with another one)";
  }
  /// Whether the result for a sequence depends on the other sequences of its call.
  virtual bool mixes_sequences() const { return false; }
};

/// What each of them is told about the model around it.
struct FeedForwardShape {
  int64_t dim = 0;  ///< C
  int64_t hidden_dim = 0;
  double dropout = 0.0;  ///< inside, in training
  int64_t layer = 0, num_layers = 1;
};

/// What a layer, or the layers of a stack together, cost, by arithmetic. All but the weights are
/// numbers of one token.
struct FeedForwardCost {
  double num_weights = 0;  ///< of matrices and kernels
  double products = 0;     ///< of a weight and a number, in a forward pass
  double kept = 0;         ///< for the backward, beside what comes in
  double widest = 0;       ///< at once inside it, without a backward; of a stack, of its widest
};

/// Of two linear maps with an activation between them.
FeedForwardCost mlp_cost(const FeedForwardShape& shape);

/// Of `num_layers` layers, each of which says what it costs.
FeedForwardCost sum_of_layers(
    FeedForwardShape shape,
    const std::function<FeedForwardCost(const FeedForwardShape&)>& cost_of_layer);

/// What a layer can do with its default options; the tests over the table hold it to that.
struct FeedForwardAbilities {
  bool tokenwise = true;  ///< see FeedForward::is_tokenwise
  bool drops = true;      ///< heeds the dropout of its shape
};

/// One line of the table.
struct FeedForwardEntry {
  const char* name;
  const char* description;  ///< one true sentence
  FeedForwardAbilities can;
  std::unique_ptr<Options> (*make_options)();
  std::shared_ptr<FeedForward> (*make)(const Options& options, const FeedForwardShape& shape);
  FeedForwardCost (*cost)(const Options& options, const FeedForwardShape& shape);
};

/// All of them, sorted by name, and the same as choices for ChosenOptions.
const std::vector<FeedForwardEntry>& feed_forward_table();
const std::vector<OptionsEntry>& feed_forward_choices();

std::shared_ptr<FeedForward> make_feed_forward(const ChosenOptions& chosen,
                                               const FeedForwardShape& shape);
/// Of all `shape.num_layers` layers of a stack.
FeedForwardCost feed_forward_cost(const ChosenOptions& chosen, const FeedForwardShape& shape);

}  // namespace elliptical::nn
