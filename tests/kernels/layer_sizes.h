// SPDX-License-Identifier: MIT
//
// Random sizes and dropout for the tests of layers on rows.
#pragma once

#include <string>

#include "elliptical/kernels/dropout.h"
#include "elliptical/kernels/rows.h"
#include "tests/kernels/random.h"
#include "tests/kernels/sanitized.h"

namespace elliptical::kernels::test {

/// Random cases of one test on one target.
inline constexpr int kLayerCases = kSanitized ? 150 : 1500;

/// Nothing, one, the lanes of every target +- 1, primes, a whole block of dropout +- 1.
inline constexpr int64_t kWidths[] = {1,  2,  3,  4,  5,  7,  8,  9,  12, 15, 16,
                                      17, 23, 31, 32, 33, 48, 63, 64, 65, 67, 130};
/// Tasks have at least 16 rows.
inline constexpr int64_t kRowCounts[] = {0, 1, 1, 2, 3, 5, 15, 16, 17, 33};

inline Rows random_rows(Random& random) { return {random.pick(kRowCounts), random.pick(kWidths)}; }

inline constexpr Rows kRowsOfSeveralTasks = {1003, 67};

/// Half of the time none; offsets far beyond 32 bits, too.
inline ElementDropout random_dropout(Random& random) {
  if (random.chance(0.5)) return {};
  constexpr double chances[] = {0.1, 0.3, 0.5, 0.9};
  const ElementDropout dropout(random.pick(chances), random.bits());
  constexpr int64_t offsets[] = {0, 0, 1, 63, 64, 1000, (int64_t{1} << 40) + 17};
  return dropout.from(random.pick(offsets));
}

inline std::string describe(uint64_t seed, Rows size, const ElementDropout& dropout) {
  return "case " + std::to_string(seed) + ", rows " + std::to_string(size.rows) + ", C " +
         std::to_string(size.C) + ", threshold " + std::to_string(dropout.threshold) + ", offset " +
         std::to_string(dropout.offset);
}

}  // namespace elliptical::kernels::test
