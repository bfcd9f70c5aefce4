// SPDX-License-Identifier: MIT
#include "elliptical/models/lm.h"

#include <torch/torch.h>

#include <algorithm>

#include "elliptical/base/errors.h"
#include "elliptical/base/option_limits.h"
#include "elliptical/nn/block_stack.h"
#include "elliptical/nn/dropout.h"
#include "elliptical/nn/initialize.h"

namespace elliptical::models {
namespace {

constexpr double kWeightStd = 0.02;

void check(const LmOptions& options) {
  const auto refuse = [](const std::string& what) { throw ConfigError("model: " + what); };
  if (options.dim % 2 != 0) {
    refuse("dim must be even for sinusoidal positions, got " + std::to_string(options.dim));
  }
  int64_t before = 0;
  for (const int64_t cutoff : options.cutoffs) {
    if (cutoff <= before) {
      refuse("cutoffs must be positive and increasing, got " + std::to_string(cutoff) + " after " +
             std::to_string(before));
    }
    before = cutoff;
  }
}

}  // namespace

void LmOptions::visit(FieldList& fields) {
  fields.add("num_layers", num_layers, "blocks", between(1, kMostLayers));
  fields.add("dim", dim, "width C of the hidden states, even", between(2, kMostWidth));
  fields.add("num_heads", num_heads, "heads per layer; they share the width",
             between(1, kMostHeads));
  fields.add("head_dim", head_dim, "width D of a head; dim / num_heads when absent",
             between(1, kMostWidth));
  fields.add("feedforward_dim", feedforward_dim, "width between the two feed-forward maps",
             between(1, kMostWidth));
  fields.add_group("feedforward", feedforward);
  fields.add("window", window, "tokens that the model reads at once", between(1, kMostTokens));
  fields.add("dropout", dropout, "of embeddings, both branches and the last hidden state",
             below(0, 1));
  fields.add("attention_dropout", attention_dropout, "of attention probabilities", below(0, 1));
  fields.add_enum(
      "positions", positions, {"forward", "reverse"}, nn::positions_from,
      "counted from the start of the text, or back from the end of the window as in the "
      "paper, which rules out streaming");
  fields.add("cutoffs", cutoffs, "where the clusters of the adaptive softmax start; [] for none");
  fields.add_group("attention", attention);
}

nn::FeedForwardCost LmOptions::feed_forward_cost() const {
  return nn::feed_forward_cost(
      feedforward, {.dim = dim, .hidden_dim = feedforward_dim, .num_layers = num_layers});
}

Lm::Lm(const LmOptions& chosen, int64_t num_words) : options(chosen), vocabulary_size(num_words) {
  check(options);
  embed_ =
      register_module("embed", std::make_shared<nn::TokenEmbedding>(vocabulary_size, options.dim));
  blocks_ = nn::make_blocks<nn::PostNormBlock>(
      *this, "blocks",
      {.attention = options.attention,
       .attention_shape = {.dim = options.dim,
                           .num_heads = options.num_heads,
                           .is_causal = true,
                           .num_layers = options.num_layers,
                           .dropout = options.attention_dropout,
                           .window = options.window,
                           .head_width = options.head_dim.value_or(0)},
       .make_feed_forward = nn::chosen_feed_forward(options.feedforward),
       .feed_forward_shape = {.hidden_dim = options.feedforward_dim, .dropout = options.dropout}},
      [&](int64_t, auto attention, auto mlp) {
        return std::make_shared<nn::PostNormBlock>(attention, mlp, options.dim, options.dropout);
      });
  softmax_ = register_module("softmax", std::make_shared<nn::AdaptiveSoftmax>(
                                            vocabulary_size, options.dim, options.cutoffs));
  position_table_ = nn::sinusoids(0, options.window, options.dim);
}

void Lm::initialize(uint64_t seed) {
  const at::NoGradGuard no_grad;
  const RandomKey key = RandomKey(seed).derive("weights");
  for (auto& item : named_parameters()) {
    const std::string& name = item.key();
    at::Tensor& parameter = item.value();
    if (name.ends_with("bias")) {
      parameter.zero_();
    } else if (name.ends_with("norm1.weight") || name.ends_with("norm2.weight")) {
      nn::fill_normal(parameter, 1.0, kWeightStd, key.derive(name));
    } else if (parameter.dim() == 2) {
      nn::fill_normal(parameter, 0.0, kWeightStd, key.derive(name));
    }  // a learned temperature starts where its options say
  }
}

at::Tensor Lm::forward(const at::Tensor& tokens, nn::Pass& pass, int64_t num_last) {
  TORCH_CHECK_VALUE(tokens.dim() == 2 && tokens.scalar_type() == at::kLong,
                    "lm: tokens must be (B, N) int64, got ", tokens.sizes(), " ",
                    tokens.scalar_type());
  const int64_t N = tokens.size(1), first = pass.num_before, end = first + N;
  at::Tensor positions = end <= position_table_.size(0) ? position_table_.narrow(0, first, N)
                                                        : nn::sinusoids(first, N, options.dim);
  if (options.positions == nn::Positions::kReverse) positions = positions.flip(0);

  pass.is_causal = true;
  pass.begin_layers();
  at::Tensor x = embed_->forward(tokens, positions.to(embed_->weight.scalar_type()),
                                 nn::element_dropout(pass, options.dropout, "embedding dropout"));
  x = nn::run_blocks(blocks_, x, pass, num_last);
  return nn::drop(x, nn::element_dropout(pass, options.dropout, "hidden dropout"));
}

at::Tensor Lm::nll(const at::Tensor& hidden, const at::Tensor& targets) const {
  return softmax_->nll(hidden, embed_->weight, targets);
}

at::Tensor Lm::log_probabilities(const at::Tensor& hidden) const {
  return softmax_->log_probabilities(hidden, embed_->weight);
}

std::optional<std::string> Lm::why_no_streaming() const {
  if (options.positions == nn::Positions::kReverse) {
    return "model.positions = \"reverse\" counts back from the end of the window, so that each new "
           "token moves all tokens before it (train with model.positions = \"forward\")";
  }
  for (const auto& block : blocks_) {
    if (const auto reason = block->attention().why_no_streaming()) {
      return "model.attention." + *reason;
    }
    if (const auto reason = block->feed_forward().why_no_streaming()) {
      return "model.feedforward." + *reason;
    }
  }
  return std::nullopt;
}

bool Lm::mixes_sequences() const {
  return std::any_of(blocks_.begin(), blocks_.end(), [](const auto& block) {
    return block->attention().mixes_sequences() || block->feed_forward().mixes_sequences();
  });
}

std::map<std::string, LabelValue> Lm::labels() const {
  // The last layer's: the first one has no metric.
  std::map<std::string, LabelValue> all = blocks_.back()->attention().labels();
  all["attention"] = options.attention.name();
  all["positions"] = std::string(to_string(options.positions));
  return all;
}

int64_t Lm::num_parameters() const {
  int64_t count = 0;
  for (const at::Tensor& parameter : parameters()) count += parameter.numel();
  return count;
}

LmStream::LmStream(Lm& model, RandomKey random) : model_(&model), random_(random) {
  if (const auto reason = model.why_no_streaming()) {
    throw ConfigError("stream: this model can not read token by token: " + *reason);
  }
}

at::Tensor LmStream::step(const at::Tensor& tokens) {
  const at::NoGradGuard no_grad;
  auto pass = nn::Pass::of_stream(caches_, num_tokens_, random_);
  const at::Tensor hidden = model_->forward(tokens, pass);
  num_tokens_ += tokens.size(1);
  return hidden;
}

}  // namespace elliptical::models
