// SPDX-License-Identifier: MIT
#include "elliptical/data/image/augment/rand_augment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "elliptical/data/image/augment/colour.h"
#include "tests/support/pictures.h"

namespace elliptical::data {
namespace {

using test::noise_picture;

constexpr Colour kFill = {124, 116, 104};  // round(255 * mean of ImageNet)

std::vector<uint8_t> from_hex(const std::string& hex) {
  std::vector<uint8_t> bytes(hex.size() / 2);
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<uint8_t>(std::stoi(hex.substr(2 * i, 2), nullptr, 16));
  }
  return bytes;
}

uint64_t fnv1a(const std::vector<uint8_t>& bytes) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (const uint8_t byte : bytes) hash = (hash ^ byte) * 0x100000001B3u;
  return hash;
}

Image apply(const Image& picture, const std::string& name, double v, double sign) {
  Image result = picture;
  for (const AugmentOperation& operation : rand_augment_operations()) {
    if (operation.name == name) operation.apply(result, {.v = v, .sign = sign}, kFill);
  }
  return result;
}

/// v at magnitude 9.
Image apply_nine(const Image& picture, const std::string& name, double sign = 1) {
  return apply(picture, name, 0.9, sign);
}

// tests/fixtures/augment/make_pillow.py made them with Pillow 13.0.0. No tolerance: pixels that are
// truncated differ by a whole step as soon as the arithmetic does.
TEST(RandAugment, EveryOperationIsPillowsToTheBit) {
  std::ifstream file(ELLIPTICAL_SOURCE_DIR "/tests/fixtures/augment/pillow.txt");
  ASSERT_TRUE(file);
  std::map<std::string, Image> pictures;
  std::set<std::string> operations;
  int num_results = 0;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string kind, name;
    words >> kind >> name;
    if (kind == "picture") {
      Image& picture = pictures[name];
      std::string hex;
      words >> picture.width >> picture.height >> hex;
      picture.pixels = from_hex(hex);
      continue;
    }
    std::string operation, v, expected;
    double sign = 0;
    words >> operation >> v >> sign >> expected;
    const Image result = apply(pictures.at(name), operation, std::strtod(v.c_str(), nullptr), sign);
    if (kind == "result") {
      EXPECT_EQ(result.pixels, from_hex(expected)) << operation << ' ' << v << ' ' << sign;
    } else {
      EXPECT_EQ(fnv1a(result.pixels), std::stoull(expected, nullptr, 16))
          << operation << ' ' << v << ' ' << sign;
    }
    operations.insert(operation);
    ++num_results;
  }
  EXPECT_EQ(num_results, 15 * 18);
  EXPECT_EQ(operations.size(), rand_augment_operations().size());
}

// TR-5: the last column of the recipe's table.
TEST(RandAugment, MagnitudeNineIsTheLastColumn) {
  Image ramp(256, 1);
  for (int64_t x = 0; x < 256; ++x) std::fill_n(ramp.at(0, x), 3, static_cast<uint8_t>(x));
  const Image posterized = apply_nine(ramp, "Posterize");
  const Image solarized = apply_nine(ramp, "Solarize");
  const Image added = apply_nine(ramp, "SolarizeAdd");
  const Image darker = apply_nine(ramp, "Brightness", -1),
              brighter = apply_nine(ramp, "Brightness");
  for (int64_t x = 0; x < 256; ++x) {
    EXPECT_EQ(posterized.at(0, x)[0], x & 0x80);
    EXPECT_EQ(solarized.at(0, x)[1], x < 26 ? x : 255 - x);
    EXPECT_EQ(added.at(0, x)[2], x < 128 ? std::min<int64_t>(x + 99, 255) : x);
    EXPECT_EQ(darker.at(0, x)[0], static_cast<int>(0.19f * static_cast<float>(x)));
    EXPECT_EQ(brighter.at(0, x)[0], std::min(255, static_cast<int>(1.81f * static_cast<float>(x))));
  }
}

TEST(RandAugment, TranslateMovesByAShareOfTheSideAndFillsTheRest) {
  const Image picture = noise_picture(200, 100, 1);
  const Image right = apply_nine(picture, "TranslateX");   // 0.405 * 200 = 81
  const Image up = apply_nine(picture, "TranslateY", -1);  // 40.5: between two rows
  for (int64_t x = 0; x < 200; ++x) {
    const Colour expected = x + 81 < 200
                                ? Colour{picture.at(50, x + 81)[0], picture.at(50, x + 81)[1],
                                         picture.at(50, x + 81)[2]}
                                : kFill;
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), right.at(50, x))) << x;
  }
  EXPECT_TRUE(std::equal(kFill.begin(), kFill.end(), up.at(39, 7)));
  EXPECT_FALSE(std::equal(kFill.begin(), kFill.end(), up.at(40, 7)));
}

TEST(RandAugment, RotateTurnsCounterClockwiseByTwentySevenDegrees) {
  // A bright spot right of the centre moves up for the positive sign.
  Image picture(101, 101);
  for (int64_t y = 49; y <= 51; ++y) {
    for (int64_t x = 89; x <= 91; ++x) std::fill_n(picture.at(y, x), 3, uint8_t{255});
  }
  const Image turned = apply_nine(picture, "Rotate");
  const double angle = 27 * 3.14159265358979 / 180;
  const auto x = static_cast<int64_t>(std::lround(50 + 40 * std::cos(angle)));
  const auto y = static_cast<int64_t>(std::lround(50 - 40 * std::sin(angle)));
  EXPECT_GT(turned.at(y, x)[0], 200);
  EXPECT_LT(turned.at(50, 90)[0], 50);
}

TEST(RandAugment, InvertTwiceIsTheIdentity) {
  const Image picture = noise_picture(20, 10, 2);
  const Image once = apply_nine(picture, "Invert");
  EXPECT_NE(once, picture);
  EXPECT_EQ(apply_nine(once, "Invert"), picture);
}

TEST(RandAugment, ConstantPicturesHaveNothingToStretch) {
  const Image constant(17, 13, 77);
  for (const char* name : {"Equalize", "AutoContrast", "Color", "Contrast", "Sharpness"}) {
    EXPECT_EQ(apply_nine(constant, name), constant) << name;
  }
}

TEST(RandAugment, TinyPicturesSurviveEveryOperation) {
  for (const auto& [width, height] : {std::pair{1, 1}, {1, 5}, {2, 2}, {3, 1}}) {
    for (const AugmentOperation& operation : rand_augment_operations()) {
      Image picture = noise_picture(width, height, 3);
      operation.apply(picture, {.v = 1.0, .sign = -1}, kFill);
      EXPECT_EQ(picture.pixels.size(), static_cast<size_t>(width * height * 3)) << operation.name;
    }
  }
}

/// How often a picture that every operation changes stays as it is.
double unchanged_share(const RandAugmentOptions& options, int num_draws) {
  Image picture = noise_picture(24, 24, 4);
  for (uint8_t& value : picture.pixels) value = 20 + value / 2;
  int unchanged = 0;
  for (int i = 0; i < num_draws; ++i) {
    Image copy = picture;
    rand_augment(copy, options, kFill, RandomKey(5).derive(i));
    unchanged += copy == picture ? 1 : 0;
  }
  return static_cast<double>(unchanged) / num_draws;
}

TEST(RandAugment, EachOperationIsAppliedWithItsProbability) {
  constexpr int kDraws = 4000;
  const double tolerance = 4 * std::sqrt(0.25 / kDraws);
  EXPECT_NEAR(unchanged_share({.num_operations = 1}, kDraws), 0.5, tolerance);
  EXPECT_NEAR(unchanged_share({}, kDraws), 0.25 + 0.25 / 225, tolerance);  // Invert may come twice
  EXPECT_EQ(unchanged_share({.num_operations = 1, .probability = 1}, 300), 0);
  EXPECT_EQ(unchanged_share({.probability = 0}, 100), 1);
  EXPECT_EQ(unchanged_share({.num_operations = 0}, 100), 1);
}

TEST(RandAugment, OptionsHaveAnEffect) {
  const Image picture = noise_picture(12, 12, 6);
  const auto results = [&](const RandAugmentOptions& options) {
    std::vector<Image> pictures(50, picture);
    for (size_t i = 0; i < pictures.size(); ++i) {
      rand_augment(pictures[i], options, kFill, RandomKey(6).derive(i));
    }
    return pictures;
  };
  const auto standard = results({});
  EXPECT_EQ(results({}), standard);
  EXPECT_NE(results({.num_operations = 3}), standard);
  EXPECT_NE(results({.magnitude = 5}), standard);
  EXPECT_NE(results({.magnitude_std = 0}), standard);
  EXPECT_NE(results({.probability = 0.9}), standard);
}

}  // namespace
}  // namespace elliptical::data
