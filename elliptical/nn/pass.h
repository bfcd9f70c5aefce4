// SPDX-License-Identifier: MIT
//
// One forward pass through a model: how whoever asks for it wants it done, what layers hand to each
// other on the way, and what they leave behind. No module keeps any of this, so forward is
// re-entrant: an attack may ask while a training step of the same model is under way.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "elliptical/base/random.h"
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

struct Pass {
  // How it is done: set by whoever asks for it.
  bool training = false;
  RandomKey random{0};  ///< of this pass: dropout, random controls
  /// These override what the model was trained with: the scope of the metric, its estimator (of a
  /// metric that reads tokens), the lower end of a random one, and whether gradients flow through
  /// it.
  std::optional<ops::MetricScope> metric_scope;
  std::optional<ops::MetricEstimator> metric_estimator;
  std::optional<double> metric_low;
  std::optional<bool> gradient_through_metric;
  /// Streaming: the caches of all layers, empty at the start. Tokens given are the next ones.
  std::vector<std::unique_ptr<AttentionCache>>* caches = nullptr;
  std::optional<at::Tensor> key_lengths;  ///< (B) int64: tokens from there on are padding

  // What it leaves behind, where somebody asks.
  Trace* trace = nullptr;
  MetricStatistics* metric_statistics = nullptr;

  // What the model says to its layers, and a layer to the next one.
  bool is_causal = false;
  int64_t layer = 0;  ///< index of the attention layer that runs
  /// Only results of so many first tokens are read: a variant may leave out the others.
  std::optional<int64_t> num_kept;
  /// The layer before: what the metric is read off; undefined in the first layer.
  at::Tensor previous_q, previous_v;  ///< (B, H, N, D)

  /// Of a training step with this key.
  static Pass of_training(RandomKey random) {
    Pass pass;
    pass.training = true;
    pass.random = random;
    return pass;
  }

  /// The seed of a purpose in the layer that runs. Not numbered by call: two variants that differ
  /// in what they draw have the same dropout elsewhere, which is what pairs them.
  int64_t seed(std::string_view purpose) const {
    return static_cast<int64_t>(random.derive(purpose).derive(layer).bits() >> 1);
  }
};

}  // namespace elliptical::nn
