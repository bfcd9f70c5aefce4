// SPDX-License-Identifier: MIT
//
// Elliptical attention (NeurIPS 2024, eq. 12): softmax(q^T M k / sqrt(D)) v with a diagonal metric
// M that is read off the change of the values from the layer before. The first layer has none. All
// ablations and controls of the metric are values of these options.
#pragma once

#include "elliptical/nn/attention/metric_source.h"

namespace elliptical::nn {

struct EllipticalOptions : Options, MetricSourceOptions {
  std::string preset = "paper";
  bool scale_logits = true;

  void visit(FieldList& fields) override;
  std::unique_ptr<Options> clone() const override;
  /// Sets the fields that a preset is about; the others return to their defaults.
  void use_preset(const std::string& name);
};

/// Throws ConfigError when the options contradict each other or the shape.
std::shared_ptr<HeadMixer> make_elliptical_mixer(const EllipticalOptions& options,
                                                 const AttentionShape& shape);
std::shared_ptr<Attention> make_elliptical(const Options& options, const AttentionShape& shape);

}  // namespace elliptical::nn
