// SPDX-License-Identifier: MIT
//
// m = temperature[h], a learned scalar per head.
#include "elliptical/ops/estimators/steps_impl.h"

namespace elliptical::ops::estimators {

at::Tensor temperature(const MetricInputs& inputs, const MetricOptions& options) {
  return repeat_rows(options.temperature->reshape({1, -1, 1, 1}), inputs, options);
}

}  // namespace elliptical::ops::estimators
