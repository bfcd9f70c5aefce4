// SPDX-License-Identifier: MIT
//
// The contract of every attention variant: tokens (B, N, C) in, tokens (B, N, C) out. The cut is
// outside the projections, so that variants with several key sets or shared projections need no
// flags. Nothing about a forward pass is kept in a module: what layers hand to each other lives in
// the context, which the model's forward owns, so that forward is re-entrant.
#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "elliptical/base/options.h"
#include "elliptical/base/random.h"
#include "elliptical/base/records.h"
#include "elliptical/ops/metric.h"

namespace elliptical::nn {

/// Where layers leave what analyses look at, when somebody asks: "layers.3.attention" -> tensor.
struct Trace {
  std::map<std::string, at::Tensor> tensors;
};

/// Keys and values of the tokens so far, and whatever else a variant needs to go on from there.
/// One per layer; a variant derives its own.
struct AttentionCache {
  virtual ~AttentionCache() = default;
};

class MetricStatistics;

/// State of one forward pass through all layers.
struct AttentionContext {
  bool is_causal = false;
  bool training = false;
  std::optional<at::Tensor> key_lengths;  ///< (B) int64: tokens from there on are padding
  /// Only results of so many first tokens are read: a variant may leave out the others.
  std::optional<int64_t> num_kept;
  RandomKey random{0};  ///< of this pass: dropout, random controls
  /// These override what the model was trained with: the scope of the metric, its estimator (of a
  /// metric that reads tokens), the lower end of a random one, and whether gradients flow through
  /// it.
  std::optional<ops::MetricScope> metric_scope;
  std::optional<ops::MetricEstimator> metric_estimator;
  std::optional<double> metric_low;
  std::optional<bool> gradient_through_metric;

  int64_t layer = 0;  ///< index of the attention layer that runs
  /// The layer before: what the metric is read off; undefined in the first layer.
  at::Tensor previous_q, previous_v;  ///< (B, H, N, D)

  /// Streaming: the caches of all layers, empty at the start. Tokens given are the next ones.
  std::vector<std::unique_ptr<AttentionCache>>* caches = nullptr;
  Trace* trace = nullptr;
  MetricStatistics* metric_statistics = nullptr;

  /// The seed of a purpose in the layer that runs. Not numbered by call: two variants that differ
  /// in what they draw have the same dropout elsewhere, which is what pairs them.
  int64_t seed(std::string_view purpose) const {
    return static_cast<int64_t>(random.derive(purpose).derive(layer).bits() >> 1);
  }
};

/// What every variant is told about the model around it.
struct AttentionShape {
  int64_t dim = 0;        ///< C
  int64_t num_heads = 0;  ///< H
  bool qkv_bias = false, out_bias = false;
  bool is_causal = false;
  int64_t layer = 0, num_layers = 1;
  double dropout = 0.0;    ///< of attention probabilities
  int64_t window = 0;      ///< tokens that the model reads at once; 0: not known
  int64_t head_width = 0;  ///< D; dim / num_heads when 0

  int64_t head_dim() const { return head_width > 0 ? head_width : dim / num_heads; }
};

class Attention : public torch::nn::Module {
 public:
  /// x (B, N, C) -> (B, N, C), before the residual connection; (B, num_kept, C) is allowed where
  /// the context has one.
  virtual at::Tensor forward(const at::Tensor& x, AttentionContext& context) = 0;
  /// Whether tokens can be fed one by one with the same result; the reason if not.
  virtual std::optional<std::string> why_no_streaming() const { return std::nullopt; }
  /// Whether the result for a sequence depends on the other sequences of its call.
  virtual bool mixes_sequences() const { return false; }
  /// Facts that every record of a model with this attention carries, beside its name.
  virtual std::map<std::string, LabelValue> labels() const { return {}; }
};

/// One line of the table of variants.
struct AttentionEntry {
  const char* name;
  const char* description;  ///< one true sentence
  bool causal;              ///< may stand in a causal model
  bool padding;             ///< understands key_lengths
  std::unique_ptr<Options> (*make_options)();
  std::shared_ptr<Attention> (*make)(const Options& options, const AttentionShape& shape);
};

/// All variants, sorted by name.
const std::vector<AttentionEntry>& attention_table();
/// The same as choices for ChosenOptions.
const std::vector<OptionsEntry>& attention_choices();

/// Builds the chosen variant. Throws ConfigError when the options and the shape do not go together.
std::shared_ptr<Attention> make_attention(const ChosenOptions& chosen, const AttentionShape& shape);

}  // namespace elliptical::nn
