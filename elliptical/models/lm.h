// SPDX-License-Identifier: MIT
//
// The decoder language model of the paper's WikiText experiments: embedding with sinusoidal
// positions, L post-norm blocks with causal attention, adaptive softmax tied to the embedding.
//
//   hidden = drop(block_L(.. block_1(drop(sqrt(C) E[tokens] + P))))        (B, N, C)
//   -log p(next token) = adaptive softmax of hidden with word vectors E
//
// Parameters: V C + V + K C + K + L (4 C^2 + 4 C + 2 C F + F + C), for V words in K clusters beside
// the head; 44,018,394 in LM small (V = 267,735). A `Stream` feeds tokens piece by piece.
#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "elliptical/base/options.h"
#include "elliptical/nn/adaptive_softmax.h"
#include "elliptical/nn/attention/attention.h"
#include "elliptical/nn/embedding.h"
#include "elliptical/nn/positions.h"
#include "elliptical/nn/post_norm_block.h"

namespace elliptical::models {

struct LmOptions {
  int64_t num_layers = 16;
  int64_t dim = 128;
  int64_t num_heads = 8;
  std::optional<int64_t> head_dim;
  int64_t feedforward_dim = 2048;
  ChosenOptions feedforward{nn::feed_forward_choices(), "relu"};
  int64_t window = 256;
  double dropout = 0.1;
  double attention_dropout = 0.0;
  nn::Positions positions = nn::Positions::kForward;
  std::vector<int64_t> cutoffs{20000, 40000, 200000};
  ChosenOptions attention{nn::attention_choices(), "elliptical"};

  void visit(FieldList& fields);
  /// Of all layers together.
  nn::FeedForwardCost feed_forward_cost() const;
};

class Lm : public torch::nn::Module {
 public:
  /// Throws ConfigError when the options do not go together. Parameters have no values yet:
  /// `initialize` or a checkpoint gives them.
  Lm(const LmOptions& options, int64_t vocabulary_size);

  /// Every parameter as a function of the seed and its name: weights N(0, 0.02^2), norm weights
  /// N(1, 0.02^2), biases 0.
  void initialize(uint64_t seed);

  /// tokens (B, N) int64 -> hidden states (B, N, C). The caller sets training, random, trace and
  /// what else he wants of `pass`; causality and layers are set here. Of a stream the tokens are the
  /// next ones, which not every model can go on with (LmStream asks). With `num_last` > 0 only
  /// those of the last so many tokens, (B, num_last, C).
  at::Tensor forward(const at::Tensor& tokens, nn::Pass& pass, int64_t num_last = 0);
  /// hidden (T, C), targets (T) -> -log p (T).
  at::Tensor nll(const at::Tensor& hidden, const at::Tensor& targets) const;
  /// hidden (T, C) -> log p of all words (T, V).
  at::Tensor log_probabilities(const at::Tensor& hidden) const;

  /// Why tokens can not be fed piece by piece, if they can not.
  std::optional<std::string> why_no_streaming() const;

  /// Whether the result for a sequence depends on the other sequences of its batch.
  bool mixes_sequences() const;

  /// Facts for records: attention, its labels, positions.
  std::map<std::string, LabelValue> labels() const;
  int64_t num_parameters() const;

  const LmOptions options;
  const int64_t vocabulary_size;

 private:
  std::shared_ptr<nn::TokenEmbedding> embed_;
  std::vector<std::shared_ptr<nn::PostNormBlock>> blocks_;
  std::shared_ptr<nn::AdaptiveSoftmax> softmax_;
  at::Tensor position_table_;  ///< (window, C), double
};

/// A text that is fed piece by piece: keys, values and the running metric are kept, nothing is
/// computed twice. The same hidden states as `forward` on the whole, to rounding.
///
///     LmStream stream(model);
///     at::Tensor hidden = stream.step(tokens);     // (B, T) -> (B, T, C)
class LmStream {
 public:
  /// Throws ConfigError with the reason when the model can not stream.
  explicit LmStream(Lm& model, RandomKey random = RandomKey{0});

  at::Tensor step(const at::Tensor& tokens);
  int64_t num_tokens() const { return num_tokens_; }

 private:
  Lm* model_;
  RandomKey random_;
  std::vector<std::unique_ptr<nn::AttentionCache>> caches_;
  int64_t num_tokens_ = 0;
};

}  // namespace elliptical::models
