// SPDX-License-Identifier: MIT
//
// Elliptical attention (NeurIPS 2024, eq. 12): softmax(q^T M k / sqrt(D)) v with a diagonal metric
// M that is read off the change of the values from the layer before. The first layer has none. All
// ablations and controls of the metric are values of these options; which other fields there are
// depends on the estimator.
#pragma once

#include <optional>

#include "elliptical/nn/attention/multi_head.h"
#include "elliptical/ops/metric.h"

namespace elliptical::nn {

/// The metric: what ops::MetricOptions has, as a recipe says it.
struct EllipticalMetricOptions {
  ops::MetricEstimator estimator = ops::MetricEstimator::kDifference;
  std::optional<ops::MetricScope> scope;  ///< absent: prefix in causal models, else sequence
  ops::MetricScaling scaling = ops::MetricScaling::kMax;
  double delta = 1.0;
  double attenuation = 0.5;
  std::optional<double> step;
  int64_t query_stride = 16;
  double low = 0.0;
  int64_t seed = 0;
  std::optional<double> value;

  void visit(FieldList& fields);
};

struct EllipticalOptions : Options {
  std::string preset = "paper";
  EllipticalMetricOptions metric;
  bool gradient_through_metric = false;
  bool scale_logits = true;
  bool metric_lookahead = false;

  void visit(FieldList& fields) override;
  std::unique_ptr<Options> clone() const override;
  /// Sets the fields that a preset is about; the others return to their defaults.
  void use_preset(const std::string& name);
};

/// Whether an estimator looks at tokens at all; the others are constant over a sequence.
bool reads_tokens(ops::MetricEstimator estimator);

/// Throws ConfigError when the options contradict each other or the shape.
std::shared_ptr<HeadMixer> make_elliptical_mixer(const EllipticalOptions& options,
                                                 const AttentionShape& shape);
std::shared_ptr<Attention> make_elliptical(const Options& options, const AttentionShape& shape);

}  // namespace elliptical::nn
