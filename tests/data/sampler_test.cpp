// SPDX-License-Identifier: MIT
#include "elliptical/data/image/augment/sampler.h"

#include <gtest/gtest.h>

#include <unordered_map>

#include "elliptical/base/errors.h"
#include "tests/support/error_message.h"

namespace elliptical::data {
namespace {

/// How often each picture that is seen in an epoch is seen.
std::unordered_map<int64_t, int> count_epoch(const EpochSampler& sampler, int64_t epoch) {
  std::unordered_map<int64_t, int> counts;
  const int64_t steps = sampler.steps_per_epoch();
  for (int64_t step = epoch * steps; step < (epoch + 1) * steps; ++step) {
    for (const int64_t index : sampler.indices(step)) ++counts[index];
  }
  return counts;
}

// TR-7: the reference gives each of four processes 320,256 samples in batches of 256; one process
// with batches of 1024 sees as many.
TEST(EpochSampler, ImageNetHasTheStepsOfTheRecipe) {
  const EpochSampler sampler(1'281'167, 1024, 3, RandomKey(1));
  EXPECT_EQ(sampler.steps_per_epoch(), 1251);
  EXPECT_EQ(sampler.steps_per_epoch() * 1024, 4 * 320'256);
  EXPECT_EQ(sampler.epoch(1250), 0);
  EXPECT_EQ(sampler.epoch(1251), 1);
  const auto counts = count_epoch(sampler, 0);
  EXPECT_EQ(counts.size(), (4u * 320'256) / 3);
  for (const auto& [index, count] : counts) {
    ASSERT_EQ(count, 3);
    ASSERT_LT(index, 1'281'167);
    ASSERT_GE(index, 0);
  }
}

TEST(EpochSampler, RepeatsStandInARowAndMayBeCutAtTheEnd) {
  const EpochSampler sampler(100, 10, 3, RandomKey(2));
  const std::vector<int64_t> first = sampler.indices(0);
  EXPECT_EQ(first[0], first[1]);
  EXPECT_EQ(first[0], first[2]);
  EXPECT_NE(first[2], first[3]);
  EXPECT_EQ(first[9], sampler.indices(1)[0]);  // samples 9, 10 and 11 of the epoch
  const auto counts = count_epoch(sampler, 0);
  EXPECT_EQ(counts.size(), 34u);
  int num_cut = 0;
  for (const auto& [index, count] : counts) num_cut += count == 3 ? 0 : 1;
  EXPECT_EQ(num_cut, 1);
}

TEST(EpochSampler, WithoutRepeatsAnEpochIsAPermutation) {
  const EpochSampler sampler(96, 8, 1, RandomKey(3));
  const auto first = count_epoch(sampler, 0);
  EXPECT_EQ(first.size(), 96u);
  EXPECT_NE(sampler.indices(0), sampler.indices(12));  // another order in the next epoch
  EXPECT_EQ(sampler.indices(5), EpochSampler(96, 8, 1, RandomKey(3)).indices(5));
  EXPECT_NE(sampler.indices(5), EpochSampler(96, 8, 1, RandomKey(4)).indices(5));
}

TEST(EpochSampler, ImpossibleSizesAreRefused) {
  EXPECT_EQ(test::error_message<UsageError>([] { EpochSampler(7, 8, 1, RandomKey(1)); }),
            "sampler: a batch must have 1 to as many pictures as there are, and at least 1 repeat, "
            "got batches of 8, 7 pictures, 1 repeats");
  EXPECT_THROW(EpochSampler(7, 0, 1, RandomKey(1)), UsageError);
  EXPECT_THROW(EpochSampler(7, 7, 0, RandomKey(1)), UsageError);
}

}  // namespace
}  // namespace elliptical::data
