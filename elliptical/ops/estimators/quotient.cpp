// SPDX-License-Identifier: MIT
//
// x = |v - v_prev| / (|q - q_prev| + attenuation): the change of the values where the queries
// changed.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include "elliptical/ops/estimators/steps_impl.h"
#include "elliptical/ops/prefix_metric.h"

namespace elliptical::ops::estimators {

at::Tensor quotient(const MetricInputs& inputs, const MetricOptions& options) {
  const at::Tensor real = real_tokens(inputs, options);
  const at::Tensor x = change(inputs.v, *inputs.v_prev, real) /
                       (change(*inputs.q, *inputs.q_prev, real) + options.attenuation);
  return scaled_mean({x, real}, options);
}

at::Tensor quotient_rows(const MetricInputs& inputs,
                         const MetricOptions& options,
                         PrefixMetricState& state) {
  const at::Tensor x = (inputs.v - *inputs.v_prev).abs() /
                       ((*inputs.q - *inputs.q_prev).abs() + options.attenuation);
  return state.update(x, at::zeros_like(x));
}

}  // namespace elliptical::ops::estimators
