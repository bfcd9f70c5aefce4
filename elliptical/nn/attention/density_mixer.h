// SPDX-License-Identifier: MIT
//
// What mixers of the kernel density family have in common: the scale of the kernel, and distances
// that may be measured with a metric (distance = "elliptical").
#pragma once

#include <optional>

#include "elliptical/nn/attention/kernel_density.h"
#include "elliptical/nn/attention/metric_source.h"

namespace elliptical::nn {

struct DensityOptions : Options, DistanceOptions {
  std::optional<double> kernel_scale;

  void visit(FieldList& fields) override;
};

class DensityMixer : public HeadMixer {
 public:
  std::optional<std::string> why_no_streaming() const override;
  std::map<std::string, LabelValue> labels() const override;

  /// Kernel regression with this layer's metric and `weights`.
  at::Tensor mix(const Heads& heads, const Pass& pass, std::unique_ptr<MixerState>* state) override;

 protected:
  /// `leaks`: its choice of weights or keys sees the future.
  DensityMixer(const DensityOptions& options, const AttentionShape& shape, bool leaks = false);

  /// Nothing where distances are Euclidean, and in the first layer. `state` belongs to it.
  std::optional<at::Tensor> metric(const Heads& heads,
                                   const Pass& pass,
                                   std::unique_ptr<MixerState>* state) const;
  const RegressionOptions& regression() const { return regression_; }
  /// Of the keys in both densities; none: all keys count the same.
  virtual std::optional<KeyWeights> weights(const Heads& heads, const Pass& pass) const;
  /// (B, 1, M): keys that are no padding; undefined: all.
  static at::Tensor real_keys(const Heads& heads, const Pass& pass);

 private:
  RegressionOptions regression_;
  bool leaks_;
  std::optional<MetricSource> source_;
};

}  // namespace elliptical::nn
