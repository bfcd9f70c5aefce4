// SPDX-License-Identifier: MIT
#include "elliptical/data/image/resample.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <stdexcept>

#include "elliptical/base/random.h"
#include "tests/support/error_message.h"
#include "tests/support/pillow_pictures.h"

namespace elliptical::data {
namespace {

using test::error_message;
using test::pillow_names;
using test::pillow_picture;

constexpr std::array kFilters = {Filter::kBox, Filter::kBilinear, Filter::kBicubic,
                                 Filter::kLanczos};

Image random_image(int64_t width, int64_t height, uint64_t seed) {
  Image image(width, height);
  RandomStream random{RandomKey(seed)};
  // Black and white drive the sums furthest.
  for (uint8_t& value : image.pixels) value = random.below(2) == 0 ? 0 : 255;
  return image;
}

TEST(Resample, IsPillowBitForBit) {
  const Image source = pillow_picture("source");
  const std::vector<std::pair<std::string, Filter>> filters = {{"box", Filter::kBox},
                                                               {"bilinear", Filter::kBilinear},
                                                               {"bicubic", Filter::kBicubic},
                                                               {"lanczos", Filter::kLanczos}};
  for (const auto& [name, filter] : filters) {
    const std::vector<std::string> sizes = pillow_names("resize " + name + " ");
    ASSERT_EQ(sizes.size(), 9u);
    for (const std::string& size : sizes) {
      const Image expected = pillow_picture("resize " + name + " " + size);
      EXPECT_EQ(resample(source, expected.width, expected.height, filter), expected)
          << name << " " << size;
    }
  }
}

/// The formula in double, for one channel of a single row.
std::vector<double> resample_row(const std::vector<double>& row, int64_t length, Filter filter) {
  const auto f = [filter](double t) -> double {
    const auto sinc = [](double s) {
      return s == 0 ? 1.0 : std::sin(std::numbers::pi * s) / (std::numbers::pi * s);
    };
    const double s = std::abs(t);
    switch (filter) {
      case Filter::kBox:
        return t > -0.5 && t <= 0.5 ? 1 : 0;
      case Filter::kBilinear:
        return s < 1 ? 1 - s : 0;
      case Filter::kBicubic:
        return s < 1   ? 1.5 * s * s * s - 2.5 * s * s + 1
               : s < 2 ? -0.5 * s * s * s + 2.5 * s * s - 4 * s + 2
                       : 0;
      case Filter::kLanczos:
        return s < 3 ? sinc(t) * sinc(t / 3) : 0;
    }
    return 0;
  };
  const double scale = static_cast<double>(row.size()) / static_cast<double>(length);
  std::vector<double> result;
  for (int64_t i = 0; i < length; ++i) {
    double sum = 0, norm = 0;
    for (size_t j = 0; j < row.size(); ++j) {
      const double t = (static_cast<double>(j) + 0.5 - (static_cast<double>(i) + 0.5) * scale) /
                       std::max(scale, 1.0);
      sum += f(t) * row[j];
      norm += f(t);
    }
    result.push_back(sum / norm);
  }
  return result;
}

RC_GTEST_PROP(Resample, RowsFollowTheFormula, (uint64_t seed)) {
  const int64_t width = *rc::gen::inRange(1, 60), length = *rc::gen::inRange(1, 90);
  // Not box: which side its edge falls on, where an edge meets a pixel's centre, is rounding.
  const std::vector<Filter> smooth(kFilters.begin() + 1, kFilters.end());
  const Filter filter = *rc::gen::elementOf(smooth);
  const Image image = random_image(width, 1, seed);
  const Image result = resample(image, length, 1, filter);
  for (int channel = 0; channel < 3; ++channel) {
    std::vector<double> row;
    for (int64_t x = 0; x < width; ++x) row.push_back(image.at(0, x)[channel]);
    const std::vector<double> expected = resample_row(row, length, filter);
    for (int64_t x = 0; x < length; ++x) {
      // Half a step for the rounding to bytes; the weights' own rounding is far smaller.
      RC_ASSERT(std::abs(result.at(0, x)[channel] - std::clamp(expected[x], 0.0, 255.0)) < 0.51);
    }
  }
}

RC_GTEST_PROP(Resample, ConstantPicturesStayConstant, ()) {
  const auto value = *rc::gen::arbitrary<uint8_t>();
  const Image image(*rc::gen::inRange(1, 70), *rc::gen::inRange(1, 70), value);
  const int64_t width = *rc::gen::inRange(1, 99), height = *rc::gen::inRange(1, 99);
  const Filter filter = *rc::gen::elementOf(kFilters);
  RC_ASSERT(resample(image, width, height, filter) == Image(width, height, value));
}

TEST(Resample, ToTheSameSizeIsTheIdentity) {
  const Image image = random_image(17, 11, 1);
  for (const Filter filter : kFilters) EXPECT_EQ(resample(image, 17, 11, filter), image);
}

TEST(Resample, HalvingWithBoxTakesMeansOfFour) {
  const Image image = pillow_picture("source");
  const Image even = crop(image, 0, 0, 40, 28);
  const Image half = resample(even, 20, 14, Filter::kBox);
  for (int64_t y = 0; y < 14; ++y) {
    for (int64_t x = 0; x < 20; ++x) {
      for (int c = 0; c < 3; ++c) {
        const int top = (even.at(2 * y, 2 * x)[c] + even.at(2 * y, 2 * x + 1)[c] + 1) / 2;
        const int bottom =
            (even.at(2 * y + 1, 2 * x)[c] + even.at(2 * y + 1, 2 * x + 1)[c] + 1) / 2;
        EXPECT_EQ(half.at(y, x)[c], (top + bottom + 1) / 2);
      }
    }
  }
}

TEST(Resample, RefusesEmptySizes) {
  EXPECT_EQ(error_message<std::invalid_argument>([] { resample(Image(4, 3), 0, 3, Filter::kBox); }),
            "resample: sizes must be 1 to 1048576, got 4 x 3 to 0 x 3");
  EXPECT_THROW(resample(Image(), 2, 2, Filter::kBox), std::invalid_argument);
  EXPECT_THROW(resize_shorter(Image(), 2, Filter::kBox), std::invalid_argument);
}

TEST(ResizeShorter, CutsTheLongerSide) {
  const auto size = [](int64_t width, int64_t height, int64_t side) {
    const Image image = resize_shorter(Image(width, height), side, Filter::kBicubic);
    return std::pair(image.width, image.height);
  };
  EXPECT_EQ(size(500, 375, 256), std::pair(int64_t{341}, int64_t{256}));  // 341.33
  EXPECT_EQ(size(375, 500, 256), std::pair(int64_t{256}, int64_t{341}));
  EXPECT_EQ(size(10, 10, 7), std::pair(int64_t{7}, int64_t{7}));
  EXPECT_EQ(size(3, 5, 4), std::pair(int64_t{4}, int64_t{6}));  // 6.67
}

TEST(Crop, TakesARectangle) {
  const Image image = random_image(9, 7, 3);
  const Image part = crop(image, 2, 1, 4, 5);
  ASSERT_EQ(part.width, 4);
  ASSERT_EQ(part.height, 5);
  for (int64_t y = 0; y < 5; ++y) {
    for (int64_t x = 0; x < 4; ++x) EXPECT_EQ(part.at(y, x)[1], image.at(y + 1, x + 2)[1]);
  }
  EXPECT_EQ(crop(image, 0, 0, 9, 7), image);
  EXPECT_EQ(error_message<std::invalid_argument>([&] { crop(image, 6, 1, 4, 5); }),
            "crop: must be inside the picture of 9 x 7, got 4 x 5 at 6, 1");
  EXPECT_THROW(crop(image, -1, 0, 2, 2), std::invalid_argument);
  EXPECT_THROW(crop(image, 0, 0, 0, 2), std::invalid_argument);
  EXPECT_THROW(crop(image, INT64_MAX, 0, 2, 2), std::invalid_argument);
}

TEST(CenterCrop, RoundsToEven) {
  // round(k + 1/2) of Python goes to the even number: 0.5 -> 0, 1.5 -> 2, 2.5 -> 2.
  for (const auto& [width, left] : {std::pair{5, 0}, {7, 2}, {9, 2}, {8, 2}, {4, 0}}) {
    const Image image = random_image(width, 4, 5);
    EXPECT_EQ(center_crop(image, 4), crop(image, left, 0, 4, 4)) << width;
  }
  EXPECT_THROW(center_crop(Image(4, 3), 4), std::invalid_argument);
}

}  // namespace
}  // namespace elliptical::data
