// SPDX-License-Identifier: MIT
//
// Inputs and options of the metric with everything that any estimator may need, in double.
#pragma once

#include "elliptical/ops/metric.h"

namespace elliptical::support {

inline constexpr int64_t kMetricB = 2, kMetricH = 3, kMetricN = 12, kMetricD = 5;

ops::MetricInputs all_inputs(int64_t num_tokens = kMetricN);
ops::MetricOptions all_options(ops::MetricEstimator estimator, ops::MetricScope scope);

/// The metric with a generator in its first state: `random` draws the same in every call.
at::Tensor repeatable_metric(const ops::MetricInputs& inputs, ops::MetricOptions options);

}  // namespace elliptical::support
