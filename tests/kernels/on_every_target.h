// SPDX-License-Identifier: MIT
//
// One check on all SIMD targets.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "tests/kernels/targets.h"

namespace elliptical::kernels::test {

/// Runs `check` on each target under test; the first that fails is the last.
template <class Check>
void on_every_target(const Check& check) {
  for (const std::string& target : targets_under_test()) {
    SCOPED_TRACE(target);
    const ForcedTarget forced(target);
    check();
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace elliptical::kernels::test
