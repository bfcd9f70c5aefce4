// SPDX-License-Identifier: MIT
#include "tests/kernels/differences.h"

#include <gtest/gtest.h>

#include <numeric>

namespace elliptical::kernels::test {

Inputs normal_inputs(const std::vector<int64_t>& sizes, Random& random) {
  Inputs inputs;
  for (const int64_t size : sizes) {
    inputs.emplace_back(static_cast<size_t>(size));
    for (double& value : inputs.back()) value = random.normal();
  }
  return inputs;
}

void expect_gradients_match_differences(
    const std::function<std::vector<double>(const Inputs&)>& function,
    const Inputs& inputs,
    const std::vector<double>& d_out,
    const Inputs& gradients) {
  // Differences of functions of order 1 lose 1e-16 / step to rounding and step^2 to curvature.
  constexpr double kDistance = 1e-5, kTolerance = 1e-7;
  const auto loss = [&](const Inputs& at) {
    const std::vector<double> out = function(at);
    return std::inner_product(out.begin(), out.end(), d_out.begin(), 0.0);
  };
  ASSERT_EQ(gradients.size(), inputs.size());
  Inputs moved = inputs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    ASSERT_EQ(gradients[i].size(), inputs[i].size());
    for (size_t k = 0; k < inputs[i].size(); ++k) {
      moved[i][k] = inputs[i][k] + kDistance;
      const double above = loss(moved);
      moved[i][k] = inputs[i][k] - kDistance;
      const double below = loss(moved);
      moved[i][k] = inputs[i][k];
      EXPECT_NEAR(gradients[i][k], (above - below) / (2 * kDistance), kTolerance)
          << "input " << i << " element " << k;
    }
  }
}

}  // namespace elliptical::kernels::test
