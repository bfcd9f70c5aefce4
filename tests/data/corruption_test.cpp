// SPDX-License-Identifier: MIT
#include "elliptical/data/corrupt/corruption.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "elliptical/base/errors.h"
#include "elliptical/data/catalog.h"
#include "elliptical/data/image/codec.h"
#include "tests/support/error_message.h"
#include "tests/support/pictures.h"
#include "tests/support/temporary_folder.h"

namespace elliptical::data {
namespace {

using test::error_message;
using test::wave_picture;

/// Pictures in the place of frost, as tests/fixtures/corrupt/make_goldens.py has them.
FrostPictures made_up_frost() {
  FrostPictures frost;
  for (int64_t number = 0; number < 5; ++number) {
    Image picture(300, 260);
    for (int64_t y = 0; y < picture.height; ++y) {
      for (int64_t x = 0; x < picture.width; ++x) {
        for (int64_t c = 0; c < 3; ++c) {
          picture.at(y, x)[c] =
              static_cast<uint8_t>((x * (7 + number) + y * 13 + c * 50 + number * 31) % 256);
        }
      }
    }
    frost.large.push_back(picture);
    frost.small.push_back(fifth_of(picture));
  }
  return frost;
}

const FrostPictures& frost() {
  static const FrostPictures pictures = made_up_frost();
  return pictures;
}

Image damaged(const Image& picture, const std::string& name, int severity, uint64_t seed = 1) {
  return corrupt(picture, find_corruption(name), severity, RandomKey(seed), &frost());
}

/// The picture of make_goldens.py.
Image golden_picture(int64_t side) {
  Image picture(side, side);
  for (int64_t y = 0; y < side; ++y) {
    for (int64_t x = 0; x < side; ++x) {
      for (int64_t c = 0; c < 3; ++c) {
        const int64_t wave = (x * (5 + 2 * c) + y * (3 + c)) * 224 / side % 512;
        int64_t value = (wave < 256 ? wave : 511 - wave) * 3 / 4 + 20;
        if ((x * 8 / side + y * 8 / side + c) % 3 == 0) value += 40;
        picture.at(y, x)[c] = static_cast<uint8_t>(std::min<int64_t>(value, 255));
      }
    }
  }
  return picture;
}

double mean_of(const Image& picture, int64_t channel) {
  double sum = 0;
  for (size_t i = channel; i < picture.pixels.size(); i += 3) sum += picture.pixels[i];
  return sum / static_cast<double>(picture.width * picture.height);
}

// make_goldens.py computes the same formulas in numpy. Pixels may differ by one step where a value
// lies within rounding errors of a whole number and is truncated.
TEST(Corruption, EqualsTheFormulasInNumpy) {
  std::ifstream file(ELLIPTICAL_SOURCE_DIR "/tests/fixtures/corrupt/goldens.txt");
  ASSERT_TRUE(file);
  std::set<std::string> names;
  int num_probes = 0, num_equal = 0;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name, hex;
    int severity = 0;
    int64_t side = 0;
    double means[3] = {};
    words >> name >> severity >> side >> means[0] >> means[1] >> means[2] >> hex;
    const std::string where = name + " " + std::to_string(severity) + " " + std::to_string(side);
    const Image result = damaged(golden_picture(side), name, severity, 2024);
    for (int64_t c = 0; c < 3; ++c) EXPECT_NEAR(mean_of(result, c), means[c], 0.01) << where;
    ASSERT_EQ(hex.size(), 2u * 96) << where;
    for (int64_t i = 0; i < 96; ++i) {
      const int expected = std::stoi(hex.substr(2 * i, 2), nullptr, 16);
      const int given = result.pixels[i / 3 * 7919 % (side * side) * 3 + i % 3];
      EXPECT_NEAR(given, expected, 1) << where << ", probe " << i;
      num_equal += given == expected ? 1 : 0;
      ++num_probes;
    }
    names.insert(name);
  }
  EXPECT_EQ(num_probes, 18 * 5 * 2 * 96);
  EXPECT_GT(num_equal, num_probes * 0.999);
  EXPECT_EQ(names.size(), corruption_table().size() - 1);  // without jpeg_compression
}

TEST(Corruption, TheTableHasFifteenAndFour) {
  int num_main = 0;
  std::set<std::string> names;
  for (const CorruptionEntry& entry : corruption_table()) {
    num_main += entry.group == CorruptionGroup::kMain ? 1 : 0;
    names.insert(entry.name);
    EXPECT_EQ(&find_corruption(entry.name), &entry);
  }
  EXPECT_EQ(num_main, 15);
  EXPECT_EQ(names.size(), 19u);
}

TEST(Corruption, IsAFunctionOfItsKey) {
  const Image picture = wave_picture(40, 40);
  const std::set<std::string> deterministic = {"defocus_blur", "zoom_blur",    "brightness",
                                               "contrast",     "pixelate",     "jpeg_compression",
                                               "saturate",     "gaussian_blur"};
  for (const CorruptionEntry& entry : corruption_table()) {
    const Image once = damaged(picture, entry.name, 3, 1);
    EXPECT_EQ(damaged(picture, entry.name, 3, 1), once) << entry.name;
    EXPECT_EQ(damaged(picture, entry.name, 3, 2) == once, deterministic.contains(entry.name))
        << entry.name;
    EXPECT_NE(once, picture) << entry.name;
    EXPECT_NE(damaged(picture, entry.name, 4, 1), once) << entry.name;
  }
}

TEST(Corruption, EverySizeWorks) {
  for (const auto& [width, height] :
       {std::pair{2, 2}, {2, 9}, {33, 20}, {64, 64}, {90, 65}, {65, 130}, {350, 300}}) {
    const Image picture = wave_picture(width, height);
    for (const CorruptionEntry& entry : corruption_table()) {
      for (const int severity : {1, 2, 5}) {
        const Image result = damaged(picture, entry.name, severity);
        ASSERT_EQ(result.width, width) << entry.name;
        ASSERT_EQ(result.height, height) << entry.name;
        ASSERT_EQ(result.pixels.size(), picture.pixels.size()) << entry.name;
      }
    }
  }
}

/// Root mean square difference.
double distance(const Image& a, const Image& b) {
  double sum = 0;
  for (size_t i = 0; i < a.pixels.size(); ++i) sum += std::pow(a.pixels[i] - b.pixels[i], 2);
  return std::sqrt(sum / static_cast<double>(a.pixels.size()));
}

TEST(Corruption, SeverityFiveIsWorseThanOne) {
  for (const int64_t side : {32, 224}) {
    const Image picture = golden_picture(side);
    for (const CorruptionEntry& entry : corruption_table()) {
      // Their severities change in kind: wide waves become narrow ones, grey becomes garish.
      const std::string name = entry.name;
      if (name == "elastic_transform" || name == "saturate") continue;
      EXPECT_GT(distance(damaged(picture, entry.name, 5), picture),
                distance(damaged(picture, entry.name, 1), picture))
          << entry.name << ' ' << side;
    }
  }
}

// IC-5
TEST(Corruption, DeterministicOnesOnSimplePictures) {
  const Image constant(224, 224, 77), grey(224, 224, 102);  // 102 = 0.4 * 255
  for (int severity = 1; severity <= kNumSeverities; ++severity) {
    EXPECT_EQ(damaged(constant, "contrast", severity), constant);
    EXPECT_EQ(damaged(constant, "pixelate", severity), constant);
    EXPECT_EQ(damaged(constant, "zoom_blur", severity), constant);
    EXPECT_EQ(damaged(constant, "gaussian_blur", severity), constant);
    EXPECT_EQ(damaged(constant, "glass_blur", severity), constant);
    EXPECT_EQ(damaged(constant, "motion_blur", severity), constant);
    EXPECT_EQ(damaged(constant, "elastic_transform", severity), constant);
  }
  EXPECT_EQ(damaged(grey, "brightness", 1), Image(224, 224, 127));  // 0.5 * 255, truncated
  EXPECT_EQ(damaged(grey, "defocus_blur", 3), grey);
  EXPECT_EQ(damaged(grey, "defocus_blur", 4), Image(224, 224, 103));  // the kernel's sum is 1.013
}

TEST(Corruption, PixelateHasTheTabulatedSides) {
  const int64_t sides[] = {134, 112, 89, 67, 56};
  for (int severity = 1; severity <= kNumSeverities; ++severity) {
    const Image result = damaged(golden_picture(224), "pixelate", severity);
    int64_t num_columns = 1;
    for (int64_t x = 1; x < 224; ++x) {
      bool is_new = false;
      for (int64_t y = 0; y < 224; ++y) {
        is_new = is_new || !std::equal(result.at(y, x), result.at(y, x) + 3, result.at(y, x - 1));
      }
      num_columns += is_new ? 1 : 0;
    }
    EXPECT_EQ(num_columns, sides[severity - 1]);
  }
}

// IC-6
TEST(Corruption, NoiseHasItsStatistics) {
  const Image grey(224, 224, 128);
  const auto count = static_cast<double>(grey.pixels.size());
  const Image noisy = damaged(grey, "gaussian_noise", 1);
  double sum = 0, squares = 0;
  for (const uint8_t value : noisy.pixels) {
    sum += value / 255.0;
    squares += value / 255.0 * (value / 255.0);
  }
  EXPECT_NEAR(std::sqrt(squares / count - sum / count * (sum / count)), 0.08, 0.0008);

  const double amounts[] = {.03, .06, .09, .17, .27};
  for (int severity = 1; severity <= kNumSeverities; ++severity) {
    const double amount = amounts[severity - 1];
    int64_t salt = 0, pepper = 0;
    for (const uint8_t value : damaged(grey, "impulse_noise", severity).pixels) {
      salt += value == 255 ? 1 : 0;
      pepper += value == 0 ? 1 : 0;
    }
    EXPECT_NEAR(static_cast<double>(salt + pepper), amount * count,
                3 * std::sqrt(amount * (1 - amount) * count));
    EXPECT_NEAR(static_cast<double>(salt), amount / 2 * count, 4 * std::sqrt(amount / 2 * count));

    // Truncation takes half a step on average; nothing is clipped at a quarter of the range.
    const double rates[] = {60, 25, 12, 5, 3};
    const Image dark(224, 224, 51);
    const double shot = mean_of(damaged(dark, "shot_noise", severity), 1) / 255;
    const double deviation = std::sqrt(0.2 / rates[severity - 1] / (224 * 224));
    if (severity <= 3) {
      EXPECT_NEAR(shot, 0.2, 4 * deviation + 1.0 / 255);
    }
  }
  EXPECT_EQ(damaged(Image(224, 224, 0), "shot_noise", 5), Image(224, 224, 0));
  EXPECT_EQ(damaged(Image(224, 224, 0), "speckle_noise", 5), Image(224, 224, 0));
}

// IC-8
TEST(Corruption, FogOfABlackPictureIsBlack) {
  EXPECT_EQ(damaged(Image(64, 64, 0), "fog", 5), Image(64, 64, 0));
  const Image fogged = damaged(Image(64, 64, 200), "fog", 5);
  EXPECT_LE(*std::max_element(fogged.pixels.begin(), fogged.pixels.end()), 200);
}

TEST(Corruption, JpegLosesMoreAtLowerQuality) {
  const Image picture = golden_picture(224);
  double last = 0;
  for (int severity = 1; severity <= kNumSeverities; ++severity) {
    const double lost = distance(damaged(picture, "jpeg_compression", severity), picture);
    EXPECT_GT(lost, last);
    last = lost;
  }
  EXPECT_EQ(damaged(picture, "jpeg_compression", 4),
            decode_image(encode_jpeg(picture, 10), "quality 10"));
}

TEST(Corruption, WrongUseIsNamed) {
  const Image picture = wave_picture(32, 32);
  EXPECT_EQ(error_message<UsageError>([] { find_corruption("glas_blur"); }),
            "corruption: unknown \"glas_blur\", did you mean \"glass_blur\"? (run: elliptical list "
            "corruptions)");
  EXPECT_EQ(error_message<UsageError>([&] { damaged(picture, "snow", 0); }),
            "corruption snow: severity must be 1 to 5, got 0");
  EXPECT_EQ(error_message<UsageError>([] { damaged(wave_picture(1, 5), "fog", 1); }),
            "corruption fog: picture must have at least 2 x 2 pixels, got 1 x 5");
  EXPECT_EQ(error_message<SetupError>(
                [&] { corrupt(picture, find_corruption("frost"), 1, RandomKey(1)); }),
            "corruption frost: the frost pictures must be there, got none (run: elliptical data "
            "get frost)");
}

TEST(FrostPictures, MissingFilesAreNamed) {
  const test::TemporaryFolder folder;
  const std::string message = error_message<DataError>([&] { load_frost_pictures(folder.path()); });
  EXPECT_NE(message.find("frost1.png"), std::string::npos) << message;
}

TEST(FrostPictures, TheRealOnesAreFive) {
  const auto folder = locate_data("frost");
  if (!folder) GTEST_SKIP() << "no frost pictures (run: elliptical data get frost)";
  const FrostPictures pictures = load_frost_pictures(*folder);
  ASSERT_EQ(pictures.large.size(), 5u);
  EXPECT_EQ(pictures.large[0].width, 900);
  EXPECT_EQ(pictures.small[0].width, 180);
  EXPECT_EQ(pictures.small[3].width, 105);
  EXPECT_EQ(pictures.small[3].height, 70);
  const Image picture = wave_picture(224, 224);
  EXPECT_NE(corrupt(picture, find_corruption("frost"), 3, RandomKey(1), &pictures), picture);
}

}  // namespace
}  // namespace elliptical::data
