// SPDX-License-Identifier: MIT
//
// How far two results are apart.
#pragma once

#include <ATen/core/Tensor.h>

namespace elliptical::support {

/// max |a - b|, where equal infinities are no difference, and NaN and another shape are an infinite
/// one.
double max_difference(const at::Tensor& a, const at::Tensor& b);

}  // namespace elliptical::support
