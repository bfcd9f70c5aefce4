// SPDX-License-Identifier: MIT
#include "elliptical/data/image/small_pictures.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "elliptical/base/errors.h"
#include "tests/support/error_message.h"

namespace elliptical::data {
namespace {

TEST(SmallPictures, AreAFunctionOfSeedSplitAndNumber) {
  const SmallPictures train(Split::kTrain), again(Split::kTrain);
  EXPECT_EQ(train.get(123), again.get(123));
  EXPECT_NE(train.get(123), train.get(133));
  EXPECT_NE(train.get(123), SmallPictures(Split::kTest).get(123));
  EXPECT_NE(train.get(123), SmallPictures(Split::kTrain, {.seed = 2}).get(123));
  EXPECT_NE(train.fingerprint(), SmallPictures(Split::kTrain, {.seed = 2}).fingerprint());
  EXPECT_EQ(train.fingerprint(), again.fingerprint());
}

TEST(SmallPictures, HaveTheSizeAskedFor) {
  const auto set = open_images("small-pictures", Split::kValid, {.side = 48});
  EXPECT_EQ(set->get(0).width, 48);
  EXPECT_EQ(set->get(0).height, 48);
  EXPECT_EQ(set->size(), 1000);
  EXPECT_EQ(set->num_classes(), 10);
  EXPECT_EQ(test::error_message<ConfigError>([] { SmallPictures(Split::kTest, {.side = 4}); }),
            "small-pictures: side must be 8 to 4096, got 4");
}

/// Which pixels belong to the shape: the brightest channel is far brighter than any ground.
std::vector<double> mask_of(const Image& image) {
  std::vector<double> mask;
  for (size_t i = 0; i < image.pixels.size(); i += 3) {
    const auto brightest = std::max({image.pixels[i], image.pixels[i + 1], image.pixels[i + 2]});
    mask.push_back(brightest > 155 ? 1 : 0);
  }
  return mask;
}

/// Mean colour of the shape.
std::array<double, 3> colour_of(const Image& image) {
  const std::vector<double> mask = mask_of(image);
  std::array<double, 3> sum = {};
  double count = 1e-9;
  for (size_t i = 0; i < mask.size(); ++i) {
    for (size_t c = 0; c < 3; ++c) sum[c] += mask[i] * image.pixels[3 * i + c];
    count += mask[i];
  }
  for (double& value : sum) value /= count;
  return sum;
}

TEST(SmallPictures, ColourAloneTellsOnlyAboutHalf) {
  // Nearest mean colour of a class, over pictures that show the class's own hue or any.
  const SmallPictures train(Split::kTrain), test(Split::kTest);
  std::vector<std::array<double, 3>> seen;
  for (int64_t i = 0; i < 1000; ++i) seen.push_back(colour_of(train.get(i)));
  int correct = 0;
  for (int64_t i = 0; i < 300; ++i) {
    const auto colour = colour_of(test.get(i));
    std::array<int, 10> votes = {};
    std::vector<std::pair<double, int64_t>> near;
    for (size_t j = 0; j < seen.size(); ++j) {
      double distance = 0;
      for (int c = 0; c < 3; ++c) distance += std::pow(seen[j][c] - colour[c], 2);
      near.emplace_back(distance, train.label(static_cast<int64_t>(j)));
    }
    std::partial_sort(near.begin(), near.begin() + 25, near.end());
    for (int k = 0; k < 25; ++k) ++votes[near[k].second];
    const auto best = std::max_element(votes.begin(), votes.end()) - votes.begin();
    correct += best == test.label(i) ? 1 : 0;
  }
  EXPECT_GT(correct, 300 * 0.35);
  EXPECT_LT(correct, 300 * 0.70);
}

TEST(SmallPictures, FormTellsDiscFromRing) {
  // A disc fills the middle of what it covers, a ring does not: that much must be in the pixels.
  const SmallPictures set(Split::kTrain, {.side = 64});
  int filled[2] = {};
  for (int64_t kind : {0, 1}) {
    for (int64_t i = kind; i < 500; i += 10) {
      const std::vector<double> mask = mask_of(set.get(i));
      double x = 0, y = 0, count = 0;
      for (int64_t p = 0; p < 64 * 64; ++p) {
        x += mask[p] * static_cast<double>(p % 64);
        y += mask[p] * static_cast<double>(p / 64);
        count += mask[p];
      }
      ASSERT_GT(count, 0);
      const auto center = std::lround(y / count) * 64 + std::lround(x / count);
      filled[kind] += mask[center] > 0 ? 1 : 0;
    }
  }
  EXPECT_EQ(filled[0], 50);
  EXPECT_EQ(filled[1], 0);
}

}  // namespace
}  // namespace elliptical::data
