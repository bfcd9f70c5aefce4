// SPDX-License-Identifier: MIT
//
// The metric as its formula says it, one row and one coordinate at a time: the version to read
// first and the one the fast kernel is tested against. Instantiated for float and double.
#pragma once

#include "elliptical/kernels/metric.h"

namespace elliptical::kernels {

/// Same contract as `metric_difference`.
template <class T>
void metric_reference(const MetricInputs<T>& in, T* metric);

}  // namespace elliptical::kernels
