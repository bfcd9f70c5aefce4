// SPDX-License-Identifier: MIT
//
// One forward pass through a model: how whoever asks for it wants it done, what layers hand to each
// other on the way, and what they leave behind. No module keeps any of this, so forward is
// re-entrant: an attack may ask while a training step of the same model is under way.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "elliptical/base/random.h"
#include "elliptical/ops/metric.h"

namespace elliptical::nn {

/// What a layer can leave for analyses. Of shapes (B, H, N, D) are queries, keys, values; the metric
/// is (B|1, H|1, 1|N, D), the map (B, H, N, M): how much each query takes of each key. The branch of
/// attention is (B, N, H D) before its projection, (B, N, C) behind it; the residual stream
/// (B, N, C) is what comes out of the block.
enum class Traced { kQueries, kKeys, kValues, kMetric, kMap, kBranch, kProjectedBranch, kResidual };
/// "queries", "keys", "values", "metric", "attention", "branch", "projected_branch", "residual".
std::string_view to_string(Traced what);

/// Where layers leave what analyses look at, when somebody asks. Nothing of it has a gradient.
class Trace {
 public:
  /// Everything about heads, which is what pictures of attention are made of.
  Trace() = default;
  explicit Trace(std::set<Traced> wanted) : wanted_(std::move(wanted)) {}
  /// Each tensor goes to `receive` and is not kept: for more layers than memory can hold.
  using Receiver = std::function<void(int64_t layer, Traced what, const at::Tensor& tensor)>;
  Trace(std::set<Traced> wanted, Receiver receive)
      : wanted_(std::move(wanted)), receive_(std::move(receive)) {}

  bool wants(Traced what) const { return wanted_.contains(what); }
  void add(int64_t layer, Traced what, const at::Tensor& tensor);

  std::map<std::string, at::Tensor> tensors;  ///< "layers.3.attention" -> tensor

 private:
  std::set<Traced> wanted_{Traced::kQueries, Traced::kKeys, Traced::kValues, Traced::kMetric,
                           Traced::kMap};
  Receiver receive_;
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

  // What it leaves behind, the first two where somebody asks.
  Trace* trace = nullptr;
  MetricStatistics* metric_statistics = nullptr;
  /// Terms of the loss that layers add in training, the balance of experts for instance, by name.
  std::map<std::string, at::Tensor> auxiliary_losses;

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

  /// What a model does before its first layer.
  void begin_layers() {
    layer = 0;
    previous_q = previous_v = at::Tensor();
  }
  bool traces(Traced what) const { return trace != nullptr && trace->wants(what); }
  /// Leaves `tensor` of the layer that runs in the trace, if it is wanted there.
  void keep(Traced what, const at::Tensor& tensor) const {
    if (traces(what)) trace->add(layer, what, tensor);
  }
  /// Several layers that add to one name have their sum.
  void add_loss(const std::string& name, const at::Tensor& term) {
    at::Tensor& sum = auxiliary_losses[name];
    sum = sum.defined() ? sum + term : term;
  }

  /// The seed of a purpose in the layer that runs. Not numbered by call: two variants that differ
  /// in what they draw have the same dropout elsewhere, which is what pairs them.
  int64_t seed(std::string_view purpose) const {
    return static_cast<int64_t>(random.derive(purpose).derive(layer).bits() >> 1);
  }
};

}  // namespace elliptical::nn
