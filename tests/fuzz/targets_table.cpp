// SPDX-License-Identifier: MIT
#include <time.h>

#include <cstdlib>
#include <iostream>

#include "tests/fuzz/targets.h"

namespace elliptical::test {

namespace {

/// Of this thread, so that a busy machine is no hang.
class CpuLimit {
 public:
  ~CpuLimit() { require(now() - start_ < 1, "an input takes less than a second"); }

 private:
  static double now() {
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  }
  double start_ = now();
};

}  // namespace

void run_target(const FuzzTarget& target, std::string_view bytes) {
  const CpuLimit limit;
  target.run(bytes);
}

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
