// SPDX-License-Identifier: MIT
//
// Which SIMD targets a test goes through, and a guard that forces one of them.
#pragma once

#include <string>
#include <vector>

namespace elliptical::kernels::test {

/// All targets this CPU can run; only the one in ELLIPTICAL_SIMD when that is set.
std::vector<std::string> targets_under_test();

/// Forces a target while it lives and fails the running test unless that one is then in use.
class ForcedTarget {
 public:
  explicit ForcedTarget(const std::string& name);
  ~ForcedTarget();
  ForcedTarget(const ForcedTarget&) = delete;
  ForcedTarget& operator=(const ForcedTarget&) = delete;

 private:
  std::string previous_;
};

}  // namespace elliptical::kernels::test
