// SPDX-License-Identifier: MIT
//
// The contract of every attention variant: tokens (B, N, C) in, tokens (B, N, C) out. The cut is
// outside the projections, so that variants with several key sets or shared projections need no
// flags. Nothing about a forward pass is kept in a module: what layers hand to each other lives in
// the pass (nn/pass.h), so that forward is re-entrant.
#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "elliptical/base/options.h"
#include "elliptical/base/records.h"
#include "elliptical/nn/pass.h"

namespace elliptical::nn {

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
  /// the pass has one.
  virtual at::Tensor forward(const at::Tensor& x, Pass& pass) = 0;
  /// Whether tokens can be fed one by one with the same result; the reason if not.
  virtual std::optional<std::string> why_no_streaming() const { return std::nullopt; }
  /// Whether the result for a sequence depends on the other sequences of its call.
  virtual bool mixes_sequences() const { return false; }
  /// Facts that every record of a model with this attention carries, beside its name.
  virtual std::map<std::string, LabelValue> labels() const { return {}; }
};

/// What a variant can do with its default options. The conformance tests ask of it what it says here
/// and hold it to the rest: what it can not do it refuses.
struct AttentionAbilities {
  bool causal = true;        ///< in a causal model no token sees a later one
  bool looks_ahead = false;  ///< not causal, and may stand in a causal model where options allow it
  bool padding = true;       ///< understands key_lengths; refuses them with c10::ValueError if not
  bool fixed_length = false;  ///< has parameters for so many tokens, and refuses more
  bool has_map = true;        ///< leaves a map of attention in a trace
  bool streams = true;        ///< in a causal model: token by token with the same result
  bool drops = true;          ///< has probabilities that dropout can drop; ConfigError if not
  bool linear_memory = true;  ///< of N tokens it keeps O(N) numbers, none for each pair of them

  bool may_be_causal() const { return causal || looks_ahead; }
};

/// One line of the table of variants.
struct AttentionEntry {
  const char* name;
  const char* description;  ///< one true sentence
  AttentionAbilities can;
  std::unique_ptr<Options> (*make_options)();
  std::shared_ptr<Attention> (*make)(const Options& options, const AttentionShape& shape);
};

/// All variants, sorted by name.
const std::vector<AttentionEntry>& attention_table();
/// The same as choices for ChosenOptions.
const std::vector<OptionsEntry>& attention_choices();

/// Builds the chosen variant, or that of an entry. Throws ConfigError when the options and the shape
/// do not go together.
std::shared_ptr<Attention> make_attention(const ChosenOptions& chosen, const AttentionShape& shape);
std::shared_ptr<Attention> make_attention(const AttentionEntry& entry,
                                          const Options& options,
                                          const AttentionShape& shape);

}  // namespace elliptical::nn
