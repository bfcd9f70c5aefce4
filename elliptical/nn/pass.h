// SPDX-License-Identifier: MIT
//
// One forward pass through a model: how whoever asks for it wants it done, what layers hand to each
// other on the way, and what they leave behind. No module keeps any of this, so forward is
// re-entrant: an attack may ask while a training step of the same model is under way.
//
// A pass has no precision of its own: a model computes in the type of its weights, float or double.
// Mixed precision belongs here, beside `training`: the type of products, which linear maps,
// attention and feed-forward layers would read. It comes with the first layers that can follow it;
// a field that none of them reads would promise what nobody keeps.
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
  /// Streaming: the caches of all layers, empty at the start. Tokens given are the next ones, behind
  /// `num_before` others.
  std::vector<std::unique_ptr<AttentionCache>>* caches = nullptr;
  int64_t num_before = 0;
  /// Whether a task is to feed its sequences token by token, as a stream, where its model can.
  bool token_by_token = false;
  std::optional<at::Tensor> key_lengths;  ///< (B) int64: tokens from there on are padding

  // What it leaves behind, the first two where somebody asks.
  Trace* trace = nullptr;
  MetricStatistics* metric_statistics = nullptr;
  /// Terms of the loss that layers add in training, the balance of experts for instance, by name.
  std::map<std::string, at::Tensor> auxiliary_losses;
  /// What a model says beside its result, by name and with gradient: a second head's logits.
  std::map<std::string, at::Tensor> outputs;

  // What the model says to its layers, and a layer to the next one.
  bool is_causal = false;
  int64_t layer = 0;  ///< index of the attention layer that runs
  /// Only results of so many first tokens are read: a variant may leave out the others.
  std::optional<int64_t> num_kept;
  /// The layer before: what the metric is read off; undefined in the first layer.
  at::Tensor previous_q, previous_v;  ///< (B, H, N, D)

  // Who asks for a pass begins with one of these; what is special about his he sets afterwards.

  /// Of a training step with this key.
  static Pass of_training(RandomKey random) {
    Pass pass;
    pass.training = true;
    pass.random = random;
    return pass;
  }
  /// Of an evaluation, which may collect what its metrics look like.
  static Pass of_evaluation(MetricStatistics* statistics = nullptr) {
    Pass pass;
    pass.metric_statistics = statistics;
    return pass;
  }
  /// Of an evaluation for people and analyses to look into.
  static Pass of_trace(Trace& trace) {
    Pass pass;
    pass.trace = &trace;
    return pass;
  }
  /// Of the next tokens of a stream whose caches hold `num_before`.
  static Pass of_stream(std::vector<std::unique_ptr<AttentionCache>>& caches,
                        int64_t num_before,
                        RandomKey random) {
    Pass pass;
    pass.caches = &caches;
    pass.num_before = num_before;
    pass.random = random;
    return pass;
  }
  /// Of an attack, whose gradients flow through the metric or not.
  static Pass of_attack(bool gradient_through_metric) {
    Pass pass;
    pass.gradient_through_metric = gradient_through_metric;
    return pass;
  }

  /// What a model does before its first layer.
  void begin_layers() {
    layer = 0;
    previous_q = previous_v = at::Tensor();
    outputs.clear();
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
