// SPDX-License-Identifier: MIT
//
// The random bits of dropout: Philox4x32-10 against the known answers its authors publish with
// Random123, and what attention needs of the mask drawn from it.
#include "elliptical/kernels/dropout.h"

#include <gtest/gtest.h>

#include <cmath>

namespace elliptical::kernels::test {
namespace {

TEST(Philox, KnownAnswers) {
  constexpr uint32_t ones = 0xFFFFFFFFu;
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (PhiloxCounter{0x6627E8D5u, 0xE169C58Du, 0xBC57AC4Cu, 0x9B00DBD8u}));
  EXPECT_EQ(philox4x32({ones, ones, ones, ones}, {ones, ones}),
            (PhiloxCounter{0x408F276Du, 0x41C83B0Eu, 0xA20BC7C6u, 0x6D5451FDu}));
  // Digits of pi.
  EXPECT_EQ(
      philox4x32({0x243F6A88u, 0x85A308D3u, 0x13198A2Eu, 0x03707344u}, {0xA4093822u, 0x299F31D0u}),
      (PhiloxCounter{0xD16CFE09u, 0x94FDCCEBu, 0x5001E420u, 0x24126EA1u}));
}

/// Share of kept probabilities in `count` x `count` scores of one head.
double keep_rate(const Dropout& dropout, int64_t head, int64_t count) {
  int64_t kept = 0;
  for (int64_t n = 0; n < count; ++n)
    for (int64_t j = 0; j < count; ++j) kept += dropout.keeps(head, n, j);
  return static_cast<double>(kept) / static_cast<double>(count * count);
}

TEST(Dropout, KeepsTheShareAskedFor) {
  constexpr int64_t count = 300;
  for (const double p : {0.01, 0.1, 0.5, 0.9}) {
    const Dropout dropout(p, 1234);
    const double deviation = std::sqrt(p * (1 - p)) / count;
    EXPECT_NEAR(keep_rate(dropout, 3, count), 1 - p, 5 * deviation) << p;  // 5 sigma
    EXPECT_DOUBLE_EQ(dropout.keep_scale, 1 / (1 - p));
  }
}

TEST(Dropout, ZeroKeepsEverything) {
  const Dropout dropout(0.0, 7);
  EXPECT_FALSE(dropout.active());
  EXPECT_EQ(keep_rate(dropout, 0, 64), 1.0);
}

TEST(Dropout, NeighboursAreIndependent) {
  // With p = 1/2 the masks of neighbouring keys, queries, heads and seeds agree half of the time.
  constexpr int64_t count = 300;
  const Dropout dropout(0.5, 42), other_seed(0.5, 43), other_high_seed(0.5, 42 + (1ull << 32));
  int64_t key = 0, query = 0, head = 0, high_head = 0, seed = 0, high_seed = 0;
  for (int64_t n = 0; n < count; ++n) {
    for (int64_t j = 0; j < count; ++j) {
      const bool keeps = dropout.keeps(5, n, j);
      key += keeps == dropout.keeps(5, n, j + 1);
      query += keeps == dropout.keeps(5, n + 1, j);
      head += keeps == dropout.keeps(6, n, j);
      high_head += keeps == dropout.keeps(5 + (int64_t{1} << 32), n, j);
      seed += keeps == other_seed.keeps(5, n, j);
      high_seed += keeps == other_high_seed.keeps(5, n, j);
    }
  }
  const double expected = count * count / 2.0;
  const double deviation = count / 2.0;
  for (const int64_t agreeing : {key, query, head, high_head, seed, high_seed})
    EXPECT_NEAR(static_cast<double>(agreeing), expected, 5 * deviation);
}

TEST(Dropout, MaskIsAFunctionOfSeedAndPlace) {
  const Dropout first(0.3, 9), second(0.3, 9);
  for (int64_t j = 0; j < 100; ++j) EXPECT_EQ(first.keeps(1, 2, j), second.keeps(1, 2, j));
}

}  // namespace
}  // namespace elliptical::kernels::test
