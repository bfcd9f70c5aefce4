// SPDX-License-Identifier: MIT
#include "elliptical/report/statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

namespace elliptical::report {
namespace {

double normal(RandomStream& random) {
  const double radius = std::sqrt(-2 * std::log(1 - random.uniform()));
  return radius * std::cos(2 * std::numbers::pi * random.uniform());
}

TEST(Quantile, InterpolatesBetweenNeighbours) {
  const std::vector<double> values = {1, 2, 4, 8, 16};
  EXPECT_EQ(quantile(values, 0), 1);
  EXPECT_EQ(quantile(values, 0.5), 4);
  EXPECT_EQ(quantile(values, 0.625), 6);
  EXPECT_EQ(quantile(values, 1), 16);
  EXPECT_EQ(quantile({3}, 0.7), 3);
}

TEST(StandardDeviation, DividesByOneLess) {
  EXPECT_DOUBLE_EQ(standard_deviation({1, 3}), std::sqrt(2.0));
  EXPECT_DOUBLE_EQ(standard_deviation({2, 2, 2}), 0);
}

// The quantile 0.975 from printed tables. Of n draws its standard error is sqrt(p (1 - p) / n) / f
// with f the density there; the tolerance is five of them.
TEST(StudentT, HasTheQuantilesOfTheTables) {
  struct Known {
    double degrees, quantile, density;
  };
  constexpr int kNum = 200000;
  for (const auto& [degrees, expected, density] :
       {Known{1, 12.7062, 0.00196}, Known{2, 4.3027, 0.01077}, Known{4, 2.7764, 0.02315},
        Known{10, 2.2281, 0.03951}, Known{30, 2.0423, 0.05138}}) {
    RandomStream random(RandomKey(7).derive(static_cast<uint64_t>(degrees)));
    std::vector<double> draws(kNum);
    for (double& draw : draws) draw = draw_student_t(random, degrees);
    std::sort(draws.begin(), draws.end());
    const double tolerance = 5 * std::sqrt(0.975 * 0.025 / kNum) / density;
    EXPECT_NEAR(quantile(draws, 0.975), expected, tolerance) << degrees;
    EXPECT_NEAR(quantile(draws, 0.025), -expected, tolerance) << degrees;
    EXPECT_NEAR(quantile(draws, 0.5), 0, 0.02) << degrees;
  }
}

using Table = std::vector<std::vector<std::optional<double>>>;

TEST(TrainingNoise, IsTheResidualOfAWholeTable) {
  // Method means 1 and 2, seed means +-1, residuals +-0.25.
  const Table table = {{0.25, 1.75}, {0.75, 3.25}};
  const auto noise = training_noise(table);
  ASSERT_TRUE(noise);
  EXPECT_EQ(noise->degrees, 1);
  EXPECT_NEAR(noise->deviation, 0.5, 1e-12);  // sqrt(4 * 0.25^2 / 1)
}

TEST(TrainingNoise, MethodAndSeedMeansAreNoNoise) {
  Table table(5, std::vector<std::optional<double>>(4));
  for (size_t a = 0; a < 5; ++a) {
    for (size_t s = 0; s < 4; ++s) {
      table[a][s] = std::sin(static_cast<double>(a)) + std::cos(3.0 * static_cast<double>(s));
    }
  }
  EXPECT_EQ(training_noise(table)->degrees, 12);
  EXPECT_NEAR(training_noise(table)->deviation, 0, 1e-12);
  table[1][2].reset();
  table[3][0].reset();
  EXPECT_EQ(training_noise(table)->degrees, 10);
  EXPECT_NEAR(training_noise(table)->deviation, 0, 1e-12);
}

// A 3 x 3 table that is 0 but for one cell of 1 leaves squares of 4/9 and, in the opposite corner,
// a residual of 1/9. Without that corner they are 4/9 - (1/9)^2 / (4/9) = 5/12.
TEST(TrainingNoise, TableWithAGap) {
  Table table(3, std::vector<std::optional<double>>(3, 0.0));
  table[0][0] = 1.0;
  table[2][2].reset();
  const auto noise = training_noise(table);
  ASSERT_TRUE(noise);
  EXPECT_EQ(noise->degrees, 3);
  EXPECT_NEAR(noise->deviation * noise->deviation * 3, 5.0 / 12, 1e-12);
}

TEST(TrainingNoise, NeedsAFreeDegree) {
  EXPECT_FALSE(training_noise({}));
  EXPECT_FALSE(training_noise({{1.0}, {2.0}}));          // one seed
  EXPECT_FALSE(training_noise({{1.0, 2.0}}));            // one method
  EXPECT_FALSE(training_noise({{1.0, {}}, {{}, 2.0}}));  // no seed in common
  // A method with one seed, or none, changes nothing.
  const Table table = {{0.25, 1.75}, {0.75, 3.25}, {{}, 9.0}, {{}, {}}};
  EXPECT_EQ(training_noise(table)->degrees, 1);
  EXPECT_NEAR(training_noise(table)->deviation, 0.5, 1e-12);
}

TEST(DifferenceInterval, IsRepeatable) {
  const std::vector<BlockDifference> blocks = {{0.1, 5}, {-0.2, 7}, {0.05, 3}};
  const auto interval = [&](uint64_t seed) {
    return difference_interval(0.3, 3, {0.1, 4}, parts_of_mean(blocks), 500, RandomKey(seed));
  };
  EXPECT_EQ(interval(1).low, interval(1).low);
  EXPECT_EQ(interval(1).high, interval(1).high);
  EXPECT_NE(interval(1).low, interval(2).low);
}

TEST(DifferenceInterval, WithoutBlocksItIsStudents) {
  // noise 0.3 and 3 seeds: half-width 0.3 sqrt(2/3) t with 10 degrees of freedom.
  const Interval interval = difference_interval(0.5, 3, {0.3, 10}, {}, 200000, RandomKey(1));
  const double half = 0.3 * std::sqrt(2.0 / 3) * 2.2281;
  EXPECT_NEAR(interval.low, 0.5 - half, 0.01);  // five standard errors of the quantile
  EXPECT_NEAR(interval.high, 0.5 + half, 0.01);
}

TEST(DifferenceInterval, WeighsBlocks) {
  // Equal blocks do not vary, whatever their weights.
  const Interval none =
      difference_interval(0.5, 3, {0, 10}, parts_of_mean({{2, 1}, {2, 30}}), 100, RandomKey(1));
  EXPECT_NEAR(none.low, 0.5, 1e-12);
  EXPECT_NEAR(none.high, 0.5, 1e-12);
  // Drawn twice the light block gives 0, the heavy one 1, both 0.99 like the whole.
  const Interval two =
      difference_interval(0, 3, {0, 10}, parts_of_mean({{0, 1}, {1, 99}}), 1000, RandomKey(1));
  EXPECT_NEAR(two.low, -0.99, 1e-12);
  EXPECT_NEAR(two.high, 0.01, 1e-12);
}

/// Experiments of 6 methods, 3 seeds and 40 blocks of text with known true differences: each
/// training adds noise of its own, and each method suits some blocks better than others.
struct Experiment {
  static constexpr size_t kMethods = 6, kSeeds = 3, kBlocks = 40;
  double training, text;  ///< deviations of the two kinds of noise in y

  /// How many of `num` intervals of method 1 - method 0 hold the true difference.
  struct Coverage {
    double whole = 0, blocks_only = 0;
  };
  Coverage run(int num, double true_difference, uint64_t seed) const {
    Coverage coverage;
    for (int i = 0; i < num; ++i) {
      RandomStream random(RandomKey(seed).derive(static_cast<uint64_t>(i)));
      std::array<double, kBlocks> block_difference = {};
      for (double& value : block_difference) {
        value = true_difference + text * std::sqrt(kBlocks) * normal(random);
      }
      double text_mean = 0;
      for (const double value : block_difference) text_mean += value / kBlocks;
      std::array<double, kSeeds> seed_effect = {};
      for (double& effect : seed_effect) effect = 3 * training * normal(random);
      Table table(kMethods, std::vector<std::optional<double>>(kSeeds));
      for (size_t a = 0; a < kMethods; ++a) {
        for (size_t s = 0; s < kSeeds; ++s) {
          table[a][s] = 0.02 * static_cast<double>(a) + seed_effect[s] + (a == 1 ? text_mean : 0) +
                        training * normal(random);
        }
      }
      // Method 0 and 1 have the same mean but for the true difference and the text.
      for (size_t s = 0; s < kSeeds; ++s) *table[1][s] -= 0.02;
      double difference = 0;
      for (size_t s = 0; s < kSeeds; ++s) difference += (*table[1][s] - *table[0][s]) / kSeeds;
      std::vector<BlockDifference> blocks;
      for (const double value : block_difference) {
        blocks.push_back({value - text_mean + difference, 100});
      }
      const auto holds = [&](const TrainingNoise& noise, const char* purpose) {
        const Interval interval =
            difference_interval(difference, kSeeds, noise, parts_of_mean(blocks), 1000,
                                RandomKey(seed).derive(purpose).derive(static_cast<uint64_t>(i)));
        return interval.low <= true_difference && true_difference <= interval.high;
      };
      coverage.whole += holds(*training_noise(table), "whole") ? 1.0 / num : 0;
      coverage.blocks_only += holds({0, 1}, "blocks") ? 1.0 / num : 0;
    }
    return coverage;
  }
};

TEST(Coverage, SeedsAndTextTogether) {
  const auto coverage = Experiment{.training = 0.003, .text = 0.0015}.run(2000, -0.004, 1);
  EXPECT_GE(coverage.whole, 0.93);
  EXPECT_LE(coverage.whole, 0.97);
  // Why seeds must be in it: text alone misses the truth most of the time.
  EXPECT_LT(coverage.blocks_only, 0.75);
}

TEST(Coverage, OneKindOfNoiseAlone) {
  const auto training = Experiment{.training = 0.003, .text = 0}.run(2000, 0.01, 2);
  EXPECT_GE(training.whole, 0.93);
  EXPECT_LE(training.whole, 0.97);
  EXPECT_LT(training.blocks_only, 0.01);
  const auto text = Experiment{.training = 1e-6, .text = 0.003}.run(2000, 0.01, 3);
  EXPECT_GE(text.whole, 0.92);  // 40 blocks: the bootstrap is a little narrow
  EXPECT_LE(text.whole, 0.97);
}

TEST(Coverage, ANullDifferenceIsInside) {
  const auto coverage = Experiment{.training = 0.003, .text = 0.0005}.run(2000, 0, 4);
  EXPECT_GE(coverage.whole, 0.93);
  EXPECT_LE(coverage.whole, 0.97);
  EXPECT_LT(coverage.blocks_only, 0.5);
}

}  // namespace
}  // namespace elliptical::report
