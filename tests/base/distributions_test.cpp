// SPDX-License-Identifier: MIT
#include "elliptical/base/distributions.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <vector>

namespace elliptical {
namespace {

constexpr int kDraws = 200'000;

struct Moments {
  double mean = 0, variance = 0;
};

Moments moments(const std::function<double(RandomStream&)>& draw) {
  RandomStream random(RandomKey(11).derive("moments"));
  double sum = 0, squares = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double x = draw(random);
    sum += x;
    squares += x * x;
  }
  const double mean = sum / kDraws;
  return {mean, squares / kDraws - mean * mean};
}

/// Four deviations of a mean of kDraws numbers with that variance.
double bound(double variance) { return 4.0 * std::sqrt(variance / kDraws); }

TEST(Distributions, NormalHasMeanZeroAndVarianceOne) {
  const Moments m = moments([](RandomStream& random) { return draw_normal(random); });
  EXPECT_NEAR(m.mean, 0, bound(1));
  EXPECT_NEAR(m.variance, 1, bound(2));  // the variance of x^2 is 2
}

TEST(Distributions, ManyNormalsAreNormalForOddCountsToo) {
  std::vector<double> x(kDraws + 1);
  RandomStream random(RandomKey(3));
  draw_normals(random, 5, 2, x.data(), kDraws + 1);
  double sum = 0, above = 0;
  for (const double value : x) {
    sum += value;
    above += value > 5 + 2 * 1.959964 ? 1 : 0;
  }
  EXPECT_NEAR(sum / (kDraws + 1), 5, bound(4));
  EXPECT_NEAR(above / (kDraws + 1), 0.025, bound(0.025 * 0.975));
  EXPECT_NE(x[kDraws], 0);
}

TEST(Distributions, GammaHasItsShapeAsMeanAndVariance) {
  for (const double shape : {0.3, 0.8, 1.0, 2.5, 40.0}) {
    const Moments m = moments([=](RandomStream& random) { return draw_gamma(random, shape); });
    EXPECT_NEAR(m.mean, shape, bound(shape)) << shape;
    // The variance of (x - mean)^2 is 2 a^2 + 6 a.
    EXPECT_NEAR(m.variance, shape, bound(2 * shape * shape + 6 * shape)) << shape;
  }
}

TEST(Distributions, BetaHasItsMoments) {
  for (const auto& [a, b] : {std::pair{0.8, 0.8}, {1.0, 1.0}, {2.0, 5.0}, {1e-3, 1e-3}}) {
    const Moments m = moments([=](RandomStream& random) { return draw_beta(random, a, b); });
    const double variance = a * b / ((a + b) * (a + b) * (a + b + 1));
    EXPECT_NEAR(m.mean, a / (a + b), bound(variance)) << a;
    EXPECT_NEAR(m.variance, variance, bound(1.0 / 16)) << a;  // (x - mean)^2 <= 1
  }
}

TEST(Distributions, PermutedIsAPermutation) {
  for (const uint64_t size : {1u, 2u, 3u, 4u, 5u, 16u, 17u, 1000u, 4097u}) {
    std::vector<int> hits(size);
    for (uint64_t i = 0; i < size; ++i) ++hits.at(permuted(RandomKey(7), size, i));
    for (const int count : hits) EXPECT_EQ(count, 1) << size;
  }
}

TEST(Distributions, PermutedPutsEverythingEverywhere) {
  // Pairs of places, since a shift alone would be fair to each single one: 90 outcomes of 10 * 9.
  constexpr int kKeys = 90'000;
  std::map<std::pair<uint64_t, uint64_t>, int> counts;
  for (int key = 0; key < kKeys; ++key) {
    ++counts[{permuted(RandomKey(key), 10, 0), permuted(RandomKey(key), 10, 1)}];
  }
  EXPECT_EQ(counts.size(), 90u);
  double chi_square = 0;
  for (const auto& [pair, count] : counts) chi_square += std::pow(count - 1000, 2) / 1000.0;
  EXPECT_LT(chi_square, 89 + 5 * std::sqrt(2 * 89.0));  // mean 89, five deviations
}

TEST(Distributions, PermutedFixesAsManyPlacesAsChanceDoes) {
  int fixed = 0;
  constexpr int kKeys = 2000;
  for (int key = 0; key < kKeys; ++key) {
    for (uint64_t i = 0; i < 50; ++i) fixed += permuted(RandomKey(key), 50, i) == i ? 1 : 0;
  }
  // One place in the mean, with variance 1, for each key.
  EXPECT_NEAR(static_cast<double>(fixed) / kKeys, 1.0, 5.0 / std::sqrt(kKeys));
}

}  // namespace
}  // namespace elliptical
