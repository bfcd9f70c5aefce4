// SPDX-License-Identifier: MIT
#include "tests/support/metric_cases.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/torch.h>

namespace elliptical::support {

ops::MetricInputs all_inputs(int64_t num_tokens) {
  const auto some = [=] {
    return torch::randn({kMetricB, kMetricH, num_tokens, kMetricD}, torch::kDouble);
  };
  return {.v = some(), .v_prev = some(), .q = some(), .k = some(), .q_prev = some()};
}

ops::MetricOptions all_options(ops::MetricEstimator estimator, ops::MetricScope scope) {
  return {.estimator = estimator,
          .scope = scope,
          .query_stride = 3,
          .low = 0.3,
          .seed = 4,
          .value = 0.6,
          .temperature = torch::rand({kMetricH}, torch::kDouble)};
}

at::Tensor repeatable_metric(const ops::MetricInputs& inputs, ops::MetricOptions options) {
  options.generator = at::make_generator<at::CPUGeneratorImpl>(5);
  return ops::metric(inputs, options);
}

}  // namespace elliptical::support
