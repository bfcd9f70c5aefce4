// SPDX-License-Identifier: MIT
//
// Gradients in double against central differences, for the references.
#pragma once

#include <functional>
#include <vector>

#include "tests/kernels/random.h"

namespace elliptical::kernels::test {

using Inputs = std::vector<std::vector<double>>;

/// Arrays of normal numbers.
Inputs normal_inputs(const std::vector<int64_t>& sizes, Random& random);

/// `gradients` holds, for each input, the gradient of sum_i d_out[i] * function(inputs)[i]; a test
/// fails that is running when one of them is not what differences give.
void expect_gradients_match_differences(
    const std::function<std::vector<double>(const Inputs&)>& function,
    const Inputs& inputs,
    const std::vector<double>& d_out,
    const Inputs& gradients);

}  // namespace elliptical::kernels::test
