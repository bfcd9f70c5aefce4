// SPDX-License-Identifier: MIT
#include <cstdlib>
#include <iostream>

#include "tests/fuzz/targets.h"

namespace elliptical::test {

void require(bool condition, const char* what) {
  if (condition) return;
  std::cerr << "broken promise: " << what << "\n";
  std::abort();
}

const std::vector<FuzzTarget>& fuzz_targets() {
  static const std::vector<FuzzTarget> all = [] {
    std::vector<FuzzTarget> targets = parser_targets();
    for (const FuzzTarget& target : run_targets()) targets.push_back(target);
    return targets;
  }();
  return all;
}

}  // namespace elliptical::test
