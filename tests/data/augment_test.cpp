// SPDX-License-Identifier: MIT
#include "elliptical/data/image/augment/augment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "elliptical/base/errors.h"
#include "elliptical/data/image/augment/geometry.h"
#include "elliptical/data/image/planes.h"
#include "elliptical/data/image/resample.h"
#include "tests/support/error_message.h"
#include "tests/support/pictures.h"

namespace elliptical::data {
namespace {

using test::noise_picture;
using test::wave_picture;

/// Nothing random is left.
AugmentOptions plain_options() {
  AugmentOptions options;
  options.crop.kind = CropKind::kWhole;
  options.mirror_probability = 0;
  options.rand_augment.num_operations = 0;
  options.colour_jitter = 0;
  options.erase.probability = 0;
  return options;
}

std::vector<float> augmented(const Image& picture,
                             const AugmentOptions& options,
                             RandomKey key,
                             int64_t size = 32) {
  std::vector<float> pixels(3 * size * size);
  augment(picture, options, {}, size, key, pixels.data());
  return pixels;
}

std::vector<float> planes(const Image& picture) {
  std::vector<float> pixels(picture.pixels.size());
  to_planes(picture, pixels.data());
  return pixels;
}

TEST(Augment, WithEverythingOffItIsThePicture) {
  const Image picture = noise_picture(32, 32, 1);
  const std::vector<float> pixels = augmented(picture, plain_options(), RandomKey(1));
  EXPECT_EQ(pixels, planes(picture));
  EXPECT_FLOAT_EQ(pixels[2 * 1024 + 5 * 32 + 7], picture.at(5, 7)[2] / 255.0f);
}

TEST(Augment, EveryOptionHasAnEffect) {
  const Image picture = noise_picture(40, 36, 2);
  const auto results = [&](const std::function<void(AugmentOptions&)>& change) {
    AugmentOptions options;
    change(options);
    std::vector<std::vector<float>> all;
    for (int i = 0; i < 40; ++i) {
      all.push_back(augmented(picture, options, RandomKey(2).derive(i)));
    }
    return all;
  };
  const auto standard = results([](AugmentOptions&) {});
  EXPECT_EQ(results([](AugmentOptions&) {}), standard);
  EXPECT_EQ(results([](AugmentOptions& o) { o.colour_jitter = 0.9; }), standard)
      << "colour jitter is for runs without RandAugment";
  const std::function<void(AugmentOptions&)> changes[] = {
      [](AugmentOptions& o) { o.crop.kind = CropKind::kPadded; },
      [](AugmentOptions& o) { o.crop.min_area = 0.5; },
      [](AugmentOptions& o) { o.crop.max_area = 0.5; },
      [](AugmentOptions& o) { o.crop.max_aspect = 1; },
      [](AugmentOptions& o) { o.mirror_probability = 1; },
      [](AugmentOptions& o) { o.rand_augment.num_operations = 0; },
      [](AugmentOptions& o) { o.erase.probability = 1; },
      [](AugmentOptions& o) { o.erase.min_area = 0.3; },
      [](AugmentOptions& o) { o.erase.max_area = 0.1; },
      [](AugmentOptions& o) { o.erase.max_aspect = 1; },
  };
  for (const auto& change : changes) EXPECT_NE(results(change), standard);
  const auto without = results([](AugmentOptions& o) { o.rand_augment.num_operations = 0; });
  EXPECT_NE(results([](AugmentOptions& o) {
              o.rand_augment.num_operations = 0;
              o.colour_jitter = 0;
            }),
            without);
  const auto padded = results([](AugmentOptions& o) { o.crop.kind = CropKind::kPadded; });
  EXPECT_NE(results([](AugmentOptions& o) {
              o.crop.kind = CropKind::kPadded;
              o.crop.padding = 2;
            }),
            padded);
}

TEST(Augment, OptionsThatContradictEachOtherAreRefused) {
  const auto refusal = [](const std::function<void(AugmentOptions&)>& change) {
    AugmentOptions options;
    change(options);
    return test::error_message<ConfigError>([&] { options.check(32); });
  };
  EXPECT_EQ(refusal([](AugmentOptions&) {}), "no error");
  EXPECT_EQ(refusal([](AugmentOptions& o) { o.crop.min_area = o.crop.max_area = 0.5; }),
            "no error");
  EXPECT_EQ(refusal([](AugmentOptions& o) { o.crop.max_area = 0.05; }),
            "data: augment.crop.min_area must be at most max_area, got min_area = 0.08, max_area = "
            "0.05");
  EXPECT_EQ(refusal([](AugmentOptions& o) { o.erase.min_area = 0.5; }),
            "data: augment.erase.min_area must be at most max_area, got min_area = 0.5, max_area = "
            "0.333333");
  EXPECT_EQ(refusal([](AugmentOptions& o) { o.patches = {.probability = 0.1, .size = 12}; }),
            "data: augment.patches.size must divide the model's image_size, got size = 12, "
            "image_size = 32");
  EXPECT_EQ(refusal([](AugmentOptions& o) { o.patches.size = 12; }), "no error");
}

TEST(Augment, MirrorHalfOfThePictures) {
  const Image picture = noise_picture(32, 32, 3);
  Image mirrored = picture;
  mirror(mirrored);
  EXPECT_EQ(mirrored.at(3, 0)[1], picture.at(3, 31)[1]);
  AugmentOptions options = plain_options();
  options.mirror_probability = 0.5;
  int count = 0;
  for (int i = 0; i < 400; ++i) {
    const std::vector<float> pixels = augmented(picture, options, RandomKey(3).derive(i));
    const bool is_mirrored = pixels == planes(mirrored);
    ASSERT_TRUE(is_mirrored || pixels == planes(picture));
    count += is_mirrored ? 1 : 0;
  }
  EXPECT_NEAR(count, 200, 4 * std::sqrt(100.0));
}

TEST(RandomCrop, BoxesHaveTheAreasAndAspectsOfTheRecipe) {
  const CropOptions options;
  double areas = 0, log_aspects = 0;
  constexpr int kDraws = 4000;
  for (int i = 0; i < kDraws; ++i) {
    RandomStream random(RandomKey(4).derive(i));
    const Box box = draw_crop_box(options, 400, 400, random);
    ASSERT_TRUE(box.left >= 0 && box.top >= 0 && box.left + box.width <= 400 &&
                box.top + box.height <= 400);
    const double area = static_cast<double>(box.width * box.height) / 160'000;
    const double aspect = static_cast<double>(box.width) / static_cast<double>(box.height);
    ASSERT_GE(area, 0.08 * 0.99);  // sides are rounded to pixels
    ASSERT_LE(aspect, 4.0 / 3.0 * 1.01);
    ASSERT_GE(aspect, 0.75 * 0.99);
    areas += area;
    log_aspects += std::log(aspect);
  }
  // Uniform areas would have the mean 0.54; boxes that do not fit are drawn again, which takes some
  // of the large ones away.
  EXPECT_GT(areas / kDraws, 0.45);
  EXPECT_LT(areas / kDraws, 0.54);
  EXPECT_NEAR(log_aspects / kDraws, 0, 0.02);
}

TEST(RandomCrop, LongPicturesFallBackToTheirMiddle) {
  const CropOptions options{.min_area = 1};
  RandomStream random(RandomKey(5));
  EXPECT_EQ(draw_crop_box(options, 1000, 100, random), (Box{433, 0, 133, 100}));
  EXPECT_EQ(draw_crop_box(options, 100, 1000, random), (Box{0, 433, 100, 133}));
}

TEST(RandomCrop, ResizedIsPillowsBicubicOfTheBox) {
  const Image picture = wave_picture(61, 47);
  const RandomKey key(6);
  RandomStream random(key);
  const Box box = draw_crop_box({}, 61, 47, random);
  EXPECT_EQ(
      random_crop(picture, {}, 24, key),
      resample(crop(picture, box.left, box.top, box.width, box.height), 24, 24, Filter::kBicubic));
}

TEST(RandomCrop, PaddedShiftsByUpToThePadding) {
  const Image picture = noise_picture(8, 8, 7);
  std::vector<int> shifts(9);
  for (int i = 0; i < 900; ++i) {
    const Image seen = random_crop(picture, {.kind = CropKind::kPadded}, 8, RandomKey(7).derive(i));
    bool is_found = false;
    for (int64_t dy = -4; dy <= 4 && !is_found; ++dy) {
      for (int64_t dx = -4; dx <= 4 && !is_found; ++dx) {
        Image shifted(8, 8);
        for (int64_t y = 0; y < 8; ++y) {
          for (int64_t x = 0; x < 8; ++x) {
            if (y + dy < 0 || y + dy >= 8 || x + dx < 0 || x + dx >= 8) continue;
            std::copy_n(picture.at(y + dy, x + dx), 3, shifted.at(y, x));
          }
        }
        is_found = shifted == seen;
        if (is_found) ++shifts[dx + 4];
      }
    }
    ASSERT_TRUE(is_found);
  }
  for (const int count : shifts) EXPECT_NEAR(count, 100, 50);  // five deviations
}

TEST(RandomCrop, UnknownKindsAreNamed) {
  EXPECT_EQ(to_string(crop_kind_from_string("padded")), "padded");
  EXPECT_EQ(test::error_message<UsageError>([] { crop_kind_from_string("resize"); }),
            "crop: unknown \"resize\", did you mean \"resized\"?");
}

// TR-4
TEST(Erase, AQuarterOfThePicturesLosesABoxOfTheRightSize) {
  constexpr int kDraws = 10'000;
  int count = 0;
  for (int i = 0; i < kDraws; ++i) {
    RandomStream random(RandomKey(8).derive(i));
    const std::optional<Box> box = draw_erased_box({}, 224, 224, random);
    if (!box) continue;
    ++count;
    const auto width = static_cast<double>(box->width), height = static_cast<double>(box->height);
    // Sides are rounded to pixels.
    ASSERT_GE((width + 0.5) * (height + 0.5), 0.02 * 224 * 224);
    ASSERT_LE((width - 0.5) * (height - 0.5), 224 * 224 / 3.0);
    ASSERT_LE((height - 0.5) / (width + 0.5), 1 / 0.3);
    ASSERT_GE((height + 0.5) / (width - 0.5), 0.3);
    ASSERT_TRUE(box->left >= 0 && box->left + box->width <= 224 && box->width < 224);
    ASSERT_TRUE(box->top >= 0 && box->top + box->height <= 224 && box->height < 224);
  }
  // Ten tries that do not fit are rarer than the noise of this count.
  EXPECT_NEAR(count, 0.25 * kDraws, 3 * std::sqrt(0.25 * 0.75 * kDraws));
}

TEST(Erase, TheBoxIsNormalNoiseAfterNormalising) {
  const EraseOptions options{.probability = 1, .min_area = 0.3};
  const PixelStatistics statistics;
  double sum = 0, squares = 0, count = 0;
  for (int i = 0; i < 20; ++i) {
    std::vector<float> pixels(3 * 64 * 48, -100.0f);
    erase(pixels.data(), 64, 48, options, statistics, RandomKey(9).derive(i));
    RandomStream random(RandomKey(9).derive(i));
    const std::optional<Box> box = draw_erased_box(options, 64, 48, random);
    for (int64_t p = 0; p < static_cast<int64_t>(pixels.size()); ++p) {
      const int64_t x = p % 64, y = p / 64 % 48, channel = p / (64 * 48);
      const bool inside = box && x >= box->left && x < box->left + box->width && y >= box->top &&
                          y < box->top + box->height;
      ASSERT_EQ(pixels[p] != -100.0f, inside);
      if (!inside) continue;
      const double normal = (pixels[p] - statistics.mean[channel]) / statistics.std[channel];
      sum += normal;
      squares += normal * normal;
      count += 1;
    }
  }
  ASSERT_GT(count, 10'000);
  EXPECT_NEAR(sum / count, 0, 4 / std::sqrt(count));
  EXPECT_NEAR(squares / count, 1, 4 * std::sqrt(2 / count));
}

}  // namespace
}  // namespace elliptical::data
