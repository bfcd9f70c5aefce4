// SPDX-License-Identifier: MIT
//
// Where a layer's metric comes from: the change of the values since the layer before, or a control
// in its place. Elliptical attention is softmax attention with one; other variants that measure
// distances take one with distance = "elliptical". The first layer has none.
#pragma once

#include <optional>

#include "elliptical/nn/attention/multi_head.h"
#include "elliptical/ops/metric.h"

namespace elliptical::nn {

/// Where the estimators consistent and jacobian vary the attention output, a function of its query:
/// around the queries, or around the keys, as the paper writes it.
enum class MetricPoints { kQueries, kKeys };
std::string to_string(MetricPoints points);

/// The metric: what ops::MetricOptions has, as a recipe says it. Which fields there are is said by
/// the row of the estimator (ops/metric_estimators.h).
struct MetricFields {
  ops::MetricEstimator estimator;
  std::optional<ops::MetricScope> scope;  ///< absent: prefix in causal models, else sequence
  ops::MetricScaling scaling = ops::MetricScaling::kMax;
  double delta = 1.0;
  double attenuation = 0.5;
  MetricPoints points = MetricPoints::kQueries;
  std::optional<double> step;
  int64_t query_stride = 16;
  double low = 0.0;
  int64_t seed = 0;
  std::optional<double> value;

  void visit(FieldList& fields);

 private:
  void add_option(FieldList& fields, const ops::EstimatorOption& option);
};

struct MetricSourceOptions {
  MetricFields metric;
  bool gradient_through_metric = false;
  bool metric_lookahead = false;

  void visit_metric(FieldList& fields);
};

/// For variants that can do without: distance = "euclidean" | "elliptical".
struct DistanceOptions : MetricSourceOptions {
  bool is_elliptical = false;

  void visit_distance(FieldList& fields);
};

/// Lower end of a random metric in the released code for attacks and swapped words; it trains with
/// 0.
inline constexpr double kReleasedAttackLow = 0.3;

/// Adds a choice between prefix, sequence and, where there is none, what suits the model.
void add_scope(FieldList& fields, std::optional<ops::MetricScope>& scope, const char* help);

class MetricSource {
 public:
  /// `logit_scale` is that of the attention, for estimators that look at it; 1 / sqrt(D) when
  /// absent. A learned temperature becomes the parameter `temperature` of `owner`. Throws
  /// ConfigError when the options contradict each other or the shape.
  MetricSource(const MetricSourceOptions& options,
               const AttentionShape& shape,
               std::optional<double> logit_scale,
               torch::nn::Module& owner);

  /// (B, H, 1, D) or, one row for each query, (B, H, N, D); nothing in the first layer. `state` is
  /// that of a stream (null outside of one) and belongs to this source alone.
  std::optional<at::Tensor> metric(const HeadMixer::Heads& heads,
                                   const Pass& pass,
                                   std::unique_ptr<MixerState>* state) const;
  /// Whether one row serves a whole sequence: then keys, too, can be stretched by it.
  bool has_one_row() const;
  std::optional<std::string> why_no_streaming() const;
  std::map<std::string, LabelValue> labels() const;

 private:
  bool has_metric() const { return layer_ > 0; }
  ops::MetricInputs inputs_of(ops::MetricEstimator estimator,
                              const HeadMixer::Heads& heads,
                              const Pass& pass) const;
  ops::MetricOptions call_options(ops::MetricEstimator estimator, const Pass& pass) const;
  at::Tensor of_sequence(const HeadMixer::Heads& heads, const Pass& pass) const;
  at::Tensor of_stream(const HeadMixer::Heads& heads,
                       const Pass& pass,
                       std::unique_ptr<MixerState>& state) const;

  MetricSourceOptions options_;
  std::optional<double> logit_scale_;
  ops::MetricScope scope_;
  bool is_causal_;
  int64_t layer_;
  at::Tensor temperature_;  ///< (H), with that control only
};

}  // namespace elliptical::nn
