// SPDX-License-Identifier: MIT
//
// `difference`, then each row replaced by its mean: as much metric, without a direction.
#include "elliptical/ops/estimators/steps_impl.h"

namespace elliptical::ops::estimators {
namespace {

at::Tensor row_means(const at::Tensor& rows) {
  return rows.mean(-1, /*keepdim=*/true).expand_as(rows);
}

}  // namespace

at::Tensor isotropic(const MetricInputs& inputs, const MetricOptions& options) {
  return row_means(difference(inputs, options));
}

at::Tensor isotropic_rows(const MetricInputs& inputs,
                          const MetricOptions& options,
                          PrefixMetricState& state) {
  return row_means(difference_rows(inputs, options, state));
}

}  // namespace elliptical::ops::estimators
