// SPDX-License-Identifier: MIT
#include "elliptical/data/image/augment/mix.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "elliptical/base/errors.h"
#include "tests/support/error_message.h"

namespace elliptical::data {
namespace {

constexpr int64_t kSide = 224;

std::vector<BatchMix> many_mixes(const MixOptions& options, int count) {
  std::vector<BatchMix> mixes;
  for (int i = 0; i < count; ++i) {
    mixes.push_back(draw_mix(options, kSide, kSide, RandomKey(9).derive(i)));
  }
  return mixes;
}

/// Pictures whose pixels all hold their number in the batch.
std::vector<float> numbered_batch(int64_t batch_size, int64_t pixels) {
  std::vector<float> batch(batch_size * pixels);
  for (int64_t i = 0; i < batch_size * pixels; ++i) batch[i] = static_cast<float>(i / pixels);
  return batch;
}

// TR-3
TEST(Mix, TargetsSumToOne) {
  const std::vector<int64_t> labels = {3, 999, 7, 7, 0, 3};
  std::vector<float> targets(6 * 1000);
  for (const double lambda : {0.0, 0.3, 1.0}) {
    mix_targets({.lambda = lambda}, 0.1, 6, 1000, labels.data(), targets.data());
    for (int64_t i = 0; i < 6; ++i) {
      const double sum = std::accumulate(&targets[i * 1000], &targets[i * 1000] + 1000, 0.0);
      EXPECT_NEAR(sum, 1.0, 1e-5);  // 1000 roundings of 1e-4 in float
    }
  }
  mix_targets({.lambda = 0.3}, 0.1, 6, 1000, labels.data(), targets.data());
  EXPECT_FLOAT_EQ(targets[1000 + 0], 0.0001f + 0.9f * 0.7f);  // sample 1 meets sample 4
  EXPECT_FLOAT_EQ(targets[1000 + 999], 0.0001f + 0.9f * 0.3f);
  EXPECT_FLOAT_EQ(targets[2 * 1000 + 7], 0.9001f);  // both partners have this label
  EXPECT_FLOAT_EQ(targets[0 * 1000 + 3], 0.9001f);
  EXPECT_FLOAT_EQ(targets[1], 0.0001f);
}

TEST(Mix, LambdaOfCutmixIsWhatIsLeftOfThePicture) {
  int num_cut = 0;
  for (const BatchMix& mix : many_mixes({}, 400)) {
    ASSERT_GE(mix.lambda, 0);
    ASSERT_LE(mix.lambda, 1);
    if (!mix.is_cutmix()) continue;
    ++num_cut;
    std::vector<float> batch = numbered_batch(2, 3 * kSide * kSide);
    mix_pixels(mix, 2, kSide, kSide, batch.data());
    const double pasted = std::accumulate(batch.begin(), batch.begin() + 3 * kSide * kSide, 0.0);
    ASSERT_DOUBLE_EQ(mix.lambda, 1.0 - pasted / (3 * kSide * kSide));
  }
  EXPECT_NEAR(num_cut / 400.0, 0.5, 4 * std::sqrt(0.25 / 400));
}

TEST(Mix, MixupBlendsPartnersFromBothEnds) {
  std::vector<float> batch = numbered_batch(4, 3 * 4 * 2);
  mix_pixels({.lambda = 0.75}, 4, 4, 2, batch.data());
  const float expected[] = {0.75f, 1.25f, 1.75f, 2.25f};  // 0.75 i + 0.25 (3 - i)
  for (int64_t i = 0; i < 4 * 24; ++i) EXPECT_FLOAT_EQ(batch[i], expected[i / 24]);
}

TEST(Mix, CutmixExchangesTheBoxOfAllChannels) {
  std::vector<float> batch = numbered_batch(2, 3 * 4 * 5);
  mix_pixels({.lambda = 0.7, .box = {.left = 1, .top = 2, .width = 3, .height = 2}}, 2, 4, 5,
             batch.data());
  for (int64_t i = 0; i < 2 * 60; ++i) {
    const int64_t x = i % 4, y = i / 4 % 5, sample = i / 60;
    const bool inside = x >= 1 && y >= 2 && y < 4;
    EXPECT_EQ(batch[i], static_cast<float>(inside ? 1 - sample : sample)) << i;
  }
}

TEST(Mix, LambdaOfMixupIsBeta) {
  double sum = 0, squares = 0;
  constexpr int kCount = 20'000;
  for (const BatchMix& mix : many_mixes({.cutmix_alpha = 0}, kCount)) {
    ASSERT_FALSE(mix.is_cutmix());
    sum += mix.lambda;
    squares += mix.lambda * mix.lambda;
  }
  const double mean = sum / kCount;
  EXPECT_NEAR(mean, 0.5, 0.01);
  EXPECT_NEAR(squares / kCount - mean * mean, 0.25 / 2.6, 0.003);  // 1 / (4 (2 alpha + 1))
}

TEST(Mix, EitherCanBeTurnedOff) {
  for (const BatchMix& mix : many_mixes({.mixup_alpha = 0}, 200)) {
    EXPECT_TRUE(mix.is_cutmix() || mix.lambda == 1.0);  // a box of less than two pixels is empty
  }
  for (const BatchMix& mix : many_mixes({.mixup_alpha = 0, .cutmix_alpha = 0}, 20)) {
    EXPECT_EQ(mix.lambda, 1.0);
  }
  for (const BatchMix& mix : many_mixes({.probability = 0}, 20)) EXPECT_EQ(mix.lambda, 1.0);
  for (const BatchMix& mix : many_mixes({.cutmix_probability = 0}, 20)) {
    EXPECT_FALSE(mix.is_cutmix());
  }
}

TEST(Mix, OddBatchesAreRefusedWhereTheyMatter) {
  std::vector<float> batch(3 * 12);
  EXPECT_EQ(
      test::error_message<UsageError>([&] { mix_pixels({.lambda = 0.5}, 3, 2, 2, batch.data()); }),
      "mixup: batch size must be even, got 3");
  EXPECT_NO_THROW(mix_pixels({}, 3, 2, 2, batch.data()));
}

}  // namespace
}  // namespace elliptical::data
