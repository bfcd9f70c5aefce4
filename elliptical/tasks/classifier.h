// SPDX-License-Identifier: MIT
//
// A model that tells pictures apart, as attacks see it. Pictures are pixels (B, 3, H, W) in [0, 1];
// what the network itself reads are normalized pixels, (pixel - mean) / std per channel. Attacks of
// the strict profile change pixels, those of the published profile change normalized pixels.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "elliptical/nn/attention/attention.h"

namespace elliptical::tasks {

/// How one pass through the network is done.
struct ClassifierPass {
  /// Whether gradients flow through the metric of elliptical attention, which is a function of the
  /// picture too: an attack that ignores it may look weaker than it is.
  bool gradient_through_metric = true;
  /// Another estimator than the model was trained with.
  std::optional<ops::MetricEstimator> metric_estimator;
  /// Another lower end of a random metric.
  std::optional<double> metric_low;
  RandomKey random{0};  ///< of variants that draw at evaluation
};

class Classifier {
 public:
  virtual ~Classifier() = default;
  virtual int64_t num_classes() const = 0;
  virtual at::Tensor normalize(const at::Tensor& pixels) const = 0;
  /// normalized (B, 3, H, W) -> (B, K); differentiable, in evaluation mode.
  virtual at::Tensor logits(const at::Tensor& normalized, const ClassifierPass& pass) = 0;
};

}  // namespace elliptical::tasks
