// SPDX-License-Identifier: MIT
//
// Analytic gradients against central differences, in double.
#pragma once

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include <functional>
#include <vector>

namespace elliptical::support {

using TensorFunction = std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>&)>;

/// Differentiates a fixed random combination of all outputs of `function` with respect to every
/// element of every input. Inputs must be double; outputs must be finite. The error of a central
/// difference with step 1e-5 is about 1e-10 for functions of order one, so 1e-7 leaves room for
/// curvature and still sees any wrong term.
::testing::AssertionResult gradients_match(const TensorFunction& function,
                                           std::vector<at::Tensor> inputs,
                                           double step = 1e-5,
                                           double tolerance = 1e-7);

}  // namespace elliptical::support
