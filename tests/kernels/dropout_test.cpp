// SPDX-License-Identifier: MIT
//
// The random bits of dropout: Philox4x32-10 against the known answers its authors publish with
// Random123, and what attention needs of the mask drawn from it; dropout of an array against its
// reference with error bounds, its mask as a function of seed and place.
#include "elliptical/kernels/dropout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "elliptical/kernels/dropout_reference.h"
#include "tests/kernels/floats.h"
#include "tests/kernels/layer_sizes.h"
#include "tests/kernels/on_every_target.h"
#include "tests/kernels/same_bits.h"

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

TEST(ScaledDropout, MatchesTheReference) {
  constexpr int64_t counts[] = {0, 1, 7, 8, 9, 63, 64, 65, 333, 4095, 4096, 4097, 9000};
  on_every_target([&] {
    for (uint64_t seed = 0; seed < kLayerCases / 5 && !testing::Test::HasFailure(); ++seed) {
      Random random(seed);
      const int64_t count = random.pick(counts);
      const ElementDropout dropout = random_dropout(random);
      const Floats x = Floats::normal(count, random);
      const double factor = random.normal();
      const bool is_in_place = random.chance(0.5);
      Floats y = is_in_place ? x : Floats(count);
      scaled_dropout(count, is_in_place ? y.data() : x.data(), factor, dropout, y.data(),
                     serial_for);
      std::vector<Bounded> exact(static_cast<size_t>(count));
      scaled_dropout_reference(count, x.as<Bounded>().data(), factor, dropout, exact.data());
      expect_within(y, exact, describe(seed, {1, count}, dropout));
    }
  });
}

/// Which of `count` elements a rule keeps, as the kernel of the target in use draws it.
std::vector<bool> kept(int64_t count, const ElementDropout& dropout) {
  const Floats ones(count, 1.0f);
  Floats y(count);
  scaled_dropout(count, ones.data(), 1.0, dropout, y.data(), serial_for);
  std::vector<bool> result;
  for (const float value : y) result.push_back(value != 0);
  return result;
}

TEST(ScaledDropout, MaskIsTheRulesOnEveryTarget) {
  on_every_target([] {
    for (const int64_t first : {int64_t{0}, int64_t{77}, (int64_t{1} << 32) * 64 - 70,
                                (int64_t{1} << 50) + 5}) {  // the block's number passes 32 bits
      const ElementDropout dropout = ElementDropout(0.37, 0xFEDCBA9876543210u).from(first);
      const std::vector<bool> mask = kept(300, dropout);
      for (int64_t i = 0; i < 300; ++i) ASSERT_EQ(mask[i], dropout.keeps(i)) << first << " " << i;
    }
  });
}

TEST(ScaledDropout, KeepsTheShareAskedForAndTheMean) {
  constexpr int64_t count = 1 << 18;
  on_every_target([] {
    for (const double p : {0.01, 0.1, 0.5, 0.9}) {
      const std::vector<bool> mask = kept(count, ElementDropout(p, 99));
      const auto share =
          static_cast<double>(std::count(mask.begin(), mask.end(), true)) / double{count};
      EXPECT_NEAR(share, 1 - p, 5 * std::sqrt(p * (1 - p) / count));  // 5 sigma
    }
    // With p = 1/2 neighbours, rows below each other and other seeds agree half of the time.
    const std::vector<bool> mask = kept(count, ElementDropout(0.5, 42)),
                            other = kept(count, ElementDropout(0.5, 43)),
                            high = kept(count, ElementDropout(0.5, 42 + (uint64_t{1} << 32)));
    for (const int64_t distance : {1, 8, 16, 64, 1024}) {
      int64_t agree = 0;
      for (int64_t i = distance; i < count; ++i) agree += mask[i] == mask[i - distance];
      EXPECT_NEAR(agree, (count - distance) / 2.0, 2.5 * std::sqrt(count)) << distance;
    }
    for (const std::vector<bool>& another : {other, high}) {
      int64_t agree = 0;
      for (int64_t i = 0; i < count; ++i) agree += mask[i] == another[i];
      EXPECT_NEAR(agree, count / 2.0, 2.5 * std::sqrt(count));
    }
  });
}

TEST(ScaledDropout, PartsOfATensorDrawItsMask) {
  on_every_target([] {
    const ElementDropout dropout(0.5, 8);
    const std::vector<bool> whole = kept(1000, dropout);
    for (const int64_t first : {1, 15, 16, 63, 64, 65, 500}) {
      const std::vector<bool> part = kept(1000 - first, dropout.from(first));
      EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + first)) << first;
    }
  });
}

TEST(ScaledDropout, SameBitsForAnySchedule) {
  on_every_target([] {
    Random random(4);
    const Floats x = Floats::normal(67'201, random);  // several tasks
    expect_same_for_any_schedule([&](const ParallelFor& threads) {
      Floats y(x.size());
      scaled_dropout(x.size(), x.data(), 0.3, ElementDropout(0.3, 6), y.data(), threads);
      return std::vector<Floats>{y};
    });
  });
}

}  // namespace
}  // namespace elliptical::kernels::test
