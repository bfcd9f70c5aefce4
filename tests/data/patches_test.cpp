// SPDX-License-Identifier: MIT
#include "elliptical/data/image/augment/patches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "elliptical/base/distributions.h"
#include "elliptical/data/image/planes.h"
#include "tests/support/pictures.h"

namespace elliptical::data {
namespace {

using test::noise_picture;

std::vector<float> planes(int64_t side, int seed) {
  const Image picture = noise_picture(side, side, seed);
  std::vector<float> pixels(picture.pixels.size());
  to_planes(picture, pixels.data());
  return pixels;
}

std::vector<float> augmented(std::vector<float> pixels,
                             int64_t side,
                             const PatchOptions& options,
                             RandomKey key) {
  augment_patches(pixels.data(), side, options, {}, key);
  return pixels;
}

/// One patch by the definition: every pixel of it weighed by two tents, summed in double.
double stretched(const std::vector<float>& pixels,
                 int64_t side,
                 int64_t size,
                 int64_t first,
                 double x,
                 double y) {
  double sum = 0;
  for (int64_t i = 0; i < size; ++i) {
    for (int64_t j = 0; j < size; ++j) {
      const double weight = std::max(0.0, 1 - std::abs(y - static_cast<double>(i))) *
                            std::max(0.0, 1 - std::abs(x - static_cast<double>(j)));
      sum += weight * pixels[first + i * side + j];
    }
  }
  return sum;
}

TEST(Patches, NothingWithoutProbability) {
  const std::vector<float> pixels = planes(32, 1);
  EXPECT_EQ(augmented(pixels, 32, {}, RandomKey(1)), pixels);
}

TEST(Patches, EachIsMirroredWhereItIs) {
  const std::vector<float> pixels = planes(24, 2);
  const std::vector<float> result =
      augmented(pixels, 24, {.probability = 1, .size = 8, .min_area = 1, .noise = 0}, RandomKey(2));
  for (int64_t i = 0; i < 3 * 24; ++i) {
    for (int64_t x = 0; x < 24; ++x) {
      const int64_t mirrored = x / 8 * 8 + 7 - x % 8;
      ASSERT_EQ(result[i * 24 + x], pixels[i * 24 + mirrored]) << i << " " << x;
    }
  }
}

TEST(Patches, CropsAreTheBoxStretchedOverThePatch) {
  constexpr int64_t kSide = 32, kSize = 16;
  const PatchOptions options{.probability = 1, .size = kSize, .min_area = 0.3, .noise = 0};
  const std::vector<float> pixels = planes(kSide, 3);
  const std::vector<float> result = augmented(pixels, kSide, options, RandomKey(3));
  for (int64_t patch = 0; patch < 4; ++patch) {
    RandomStream random(RandomKey(3).derive(static_cast<uint64_t>(patch)));
    for (int i = 0; i < 3; ++i) random.uniform();  // whether: always
    const double side = std::sqrt(0.3 + 0.7 * random.uniform()) * kSize;
    const double left = random.uniform() * (kSize - side), top = random.uniform() * (kSize - side);
    ASSERT_LT(left + side, kSize + 1e-9);
    for (int64_t channel = 0; channel < 3; ++channel) {
      const int64_t first = (channel * kSide + patch / 2 * kSize) * kSide + patch % 2 * kSize;
      for (int64_t y = 0; y < kSize; ++y) {
        for (int64_t x = 0; x < kSize; ++x) {
          const double expected = stretched(
              pixels, kSide, kSize, first, left + (side - 1) * static_cast<double>(x) / (kSize - 1),
              top + (side - 1) * static_cast<double>(y) / (kSize - 1));
          const float got = result[first + y * kSide + kSize - 1 - x];        // mirrored too
          ASSERT_NEAR(got, expected, 1e-6) << patch << " " << y << " " << x;  // float
        }
      }
    }
  }
}

TEST(Patches, NoiseIsInUnitsOfNormalisedPixels) {
  const PatchOptions options{.probability = 1, .size = 16, .min_area = 1, .noise = 0.05};
  const PixelStatistics statistics;
  std::vector<float> grey(3 * 128 * 128, 0.5f);
  augment_patches(grey.data(), 128, options, statistics, RandomKey(4));
  for (int64_t channel = 0; channel < 3; ++channel) {
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < 128 * 128; ++i) {
      const double normal = (grey[channel * 128 * 128 + i] - 0.5) / statistics.std[channel];
      sum += normal;
      squares += normal * normal;
    }
    const double count = 128 * 128;
    EXPECT_NEAR(sum / count, 0, 4 * 0.05 / std::sqrt(count));
    EXPECT_NEAR(std::sqrt(squares / count), 0.05, 4 * 0.05 / std::sqrt(2 * count));
  }
}

TEST(Patches, EachChangeHasTheProbability) {
  const std::vector<float> pixels = planes(256, 5);
  int num_mirrored = 0, num_untouched = 0;
  constexpr int64_t kPatches = 32 * 32;
  const PatchOptions options{.probability = 0.1, .size = 8, .min_area = 1, .noise = 0.01};
  const std::vector<float> result = augmented(pixels, 256, options, RandomKey(5));
  for (int64_t patch = 0; patch < kPatches; ++patch) {
    const int64_t first = patch / 32 * 8 * 256 + patch % 32 * 8;
    double same = 0, mirrored = 0;  // largest differences
    for (int64_t y = 0; y < 8; ++y) {
      for (int64_t x = 0; x < 8; ++x) {
        const float got = result[first + y * 256 + x];
        same = std::max<double>(same, std::abs(got - pixels[first + y * 256 + x]));
        mirrored = std::max<double>(mirrored, std::abs(got - pixels[first + y * 256 + 7 - x]));
      }
    }
    num_untouched += same == 0 ? 1 : 0;
    num_mirrored += mirrored < 0.05 ? 1 : 0;  // far above the noise, far below other pixels
  }
  const auto expect = [](int count, double probability) {
    EXPECT_NEAR(count, probability * kPatches,
                4 * std::sqrt(probability * (1 - probability) * kPatches));
  };
  expect(num_mirrored, 0.1);
  expect(num_untouched, 0.9 * 0.9);  // a crop of the whole patch changes nothing
}

TEST(Patches, PixelsStayPixels) {
  std::vector<float> pixels(3 * 16 * 16, 1.0f);
  pixels[7] = -3.0f;  // erasing leaves such values
  augment_patches(pixels.data(), 16, {.probability = 1, .noise = 1}, {}, RandomKey(6));
  EXPECT_GE(*std::min_element(pixels.begin(), pixels.end()), 0.0f);
  EXPECT_LE(*std::max_element(pixels.begin(), pixels.end()), 1.0f);
}

TEST(Patches, OnePixelIsAPatch) {
  const std::vector<float> pixels = planes(4, 7);
  EXPECT_EQ(augmented(pixels, 4, {.probability = 1, .size = 1, .min_area = 0.1, .noise = 0},
                      RandomKey(7)),
            pixels);
}

}  // namespace
}  // namespace elliptical::data
