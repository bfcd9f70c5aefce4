// SPDX-License-Identifier: MIT
#include "elliptical/nn/attention/rvt.h"

#include <torch/torch.h>

#include <cmath>
#include <limits>

#include "elliptical/base/errors.h"
#include "elliptical/base/option_limits.h"
#include "elliptical/nn/attention/attend.h"
#include "elliptical/nn/attention/kernel_density.h"
#include "elliptical/nn/dropout.h"

namespace elliptical::nn {
namespace {

class RvtMixer : public HeadMixer {
 public:
  RvtMixer(const RvtAttentionOptions& options, const AttentionShape& shape)
      : normalize_keys_(options.normalize_keys), dropout_(shape.dropout) {
    if (shape.layer < options.gated_layers.value_or(shape.num_layers)) {
      const int64_t window = options.window.value_or(shape.window);
      if (window < 1) {
        throw ConfigError(
            "rvt attention: window must be given, got none: the model around it has no fixed "
            "number of tokens (set window to the longest sequence)");
      }
      if (window < shape.window) {
        throw ConfigError("rvt attention: window must be at least the model's " +
                          std::to_string(shape.window) + " tokens, got " + std::to_string(window));
      }
      gate_ = register_parameter("gate", torch::zeros({shape.num_heads, window, window}));
    }
    if (options.is_elliptical) source_.emplace(options, shape, std::nullopt, *this);
  }

  at::Tensor mix(const Heads& heads,
                 const Pass& pass,
                 std::unique_ptr<MixerState>* state) override {
    std::optional<at::Tensor> metric;
    if (source_) metric = source_->metric(heads, pass, state);
    const Heads used{heads.q, normalize_keys_ ? normalized_keys(heads.k) : heads.k, heads.v,
                     heads.v_new};
    if (!gate_.defined()) return attend(used, metric, {.dropout = dropout_}, pass);
    const at::Tensor map = probabilities(used, metric, pass);
    leave_trace(used, metric, [&] { return map; }, pass);
    return drop(map, element_dropout(pass, dropout_, "attention dropout")).matmul(heads.v);
  }

  std::optional<std::string> why_no_streaming() const override {
    return source_ ? source_->why_no_streaming() : std::nullopt;
  }
  std::map<std::string, LabelValue> labels() const override {
    std::map<std::string, LabelValue> all{{"leaks_future", false}};
    if (source_) all = source_->labels();
    all["normalized_keys"] = normalize_keys_;
    return all;
  }

 private:
  /// (B, H, N, M); rows that see nothing are 0.
  at::Tensor probabilities(const Heads& heads,
                           const std::optional<at::Tensor>& metric,
                           const Pass& pass) const {
    const int64_t N = heads.q.size(2), M = heads.k.size(2), window = gate_.size(1);
    TORCH_CHECK_VALUE(M <= window, "rvt attention: there must be at most ", window,
                      " tokens, the size of the learned gate, got ", M,
                      " (train with a larger model.attention.window)");
    // In a stream the queries are the last N of M positions.
    const at::Tensor gate = gate_.narrow(1, M - N, N).narrow(2, 0, M).sigmoid();
    const double scale = 1.0 / std::sqrt(static_cast<double>(heads.q.size(3)));
    const at::Tensor q = (metric ? heads.q * *metric : heads.q) * scale;
    const at::Tensor logits = q.matmul(heads.k.transpose(-2, -1)) * gate;
    if (!pass.is_causal && !pass.key_lengths) return logits.softmax(-1);
    const at::Tensor seen = visible_keys(N, M, pass);
    // Finite, so that a row that sees nothing has a gradient; its weights are set to 0 behind.
    const double hidden = logits.scalar_type() == at::kDouble
                              ? std::numeric_limits<double>::lowest()
                              : std::numeric_limits<float>::lowest();
    return at::where(seen, at::where(seen, logits, hidden).softmax(-1), 0.0);
  }

  bool normalize_keys_;
  double dropout_;
  at::Tensor gate_;  ///< W, (H, window, window); undefined in layers without
  std::optional<MetricSource> source_;
};

}  // namespace

void RvtAttentionOptions::visit(FieldList& fields) {
  fields.add("normalize_keys", normalize_keys,
             "keys of length 1, as in DeiT-RVT; RVT has raw ones");
  fields.add("gated_layers", gated_layers, "layers with gates, the first ones; all when absent",
             between(0, kMostLayers));
  fields.add("window", window, "tokens that the gate is for; the model's when absent",
             between(1, kMostTokens));
  visit_distance(fields);
}

std::unique_ptr<Options> RvtAttentionOptions::clone() const {
  return std::make_unique<RvtAttentionOptions>(*this);
}

std::shared_ptr<HeadMixer> make_rvt_mixer(const RvtAttentionOptions& options,
                                          const AttentionShape& shape) {
  return std::make_shared<RvtMixer>(options, shape);
}

std::shared_ptr<Attention> make_rvt(const Options& options, const AttentionShape& shape) {
  return std::make_shared<MultiHead>(
      shape, make_rvt_mixer(dynamic_cast<const RvtAttentionOptions&>(options), shape));
}

}  // namespace elliptical::nn
