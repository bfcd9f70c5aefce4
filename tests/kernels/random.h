// SPDX-License-Identifier: MIT
//
// Random numbers of the kernels' tests.
#pragma once

#include <cstddef>
#include <cstdint>

namespace elliptical::kernels::test {

/// SplitMix64: the same numbers on every machine and standard library.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t bits();
  int64_t below(int64_t bound) {
    return static_cast<int64_t>(bits() % static_cast<uint64_t>(bound));
  }
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  double normal();
  bool chance(double p) { return uniform() < p; }
  template <class T, size_t count>
  T pick(const T (&choices)[count]) {
    return choices[below(static_cast<int64_t>(count))];
  }

 private:
  uint64_t state_;
};

}  // namespace elliptical::kernels::test
