// SPDX-License-Identifier: MIT
//
// The paper's estimator: x = |v - v_prev| / delta, pooled by the mean.
#include "elliptical/ops/estimators/steps_impl.h"
#include "elliptical/ops/fused_layer_impl.h"
#include "elliptical/ops/metric_impl.h"
#include "elliptical/ops/prefix_metric.h"

namespace elliptical::ops::estimators {

at::Tensor difference(const MetricInputs& inputs, const MetricOptions& options) {
  return scaled_mean(value_changes(inputs, options), options);
}

std::optional<at::Tensor> difference_fused(const MetricInputs& inputs,
                                           const MetricOptions& options) {
  const at::Tensor &v = inputs.v, &v_prev = *inputs.v_prev;
  if (!fused_layer_applies(v)) return std::nullopt;
  if (!any_requires_grad({&v, &v_prev})) {
    return call_metric_difference({.v = v,
                                   .v_prev = v_prev,
                                   .lengths = options.lengths,
                                   .prefix = options.scope == MetricScope::kPrefix,
                                   .scaling = options.scaling,
                                   .delta = options.delta});
  }
  if (options.scope == MetricScope::kPrefix || options.lengths || v.sym_size(2) == 0) {
    return std::nullopt;
  }
  return scale_rows(mean_change(v, v_prev, options.delta), options.scaling);
}

at::Tensor difference_rows(const MetricInputs& inputs,
                           const MetricOptions&,
                           PrefixMetricState& state) {
  return state.update(inputs.v, *inputs.v_prev);
}

}  // namespace elliptical::ops::estimators
