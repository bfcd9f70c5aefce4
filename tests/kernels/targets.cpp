// SPDX-License-Identifier: MIT
#include "tests/kernels/targets.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "elliptical/kernels/simd.h"

namespace elliptical::kernels::test {

std::vector<std::string> targets_under_test() {
  if (const char* only = std::getenv("ELLIPTICAL_SIMD")) return {only};
  return simd_targets();
}

ForcedTarget::ForcedTarget(const std::string& name) : previous_(simd_target()) {
  simd_use(name);
  EXPECT_EQ(simd_target(), name);
}

ForcedTarget::~ForcedTarget() { simd_use(previous_); }

}  // namespace elliptical::kernels::test
