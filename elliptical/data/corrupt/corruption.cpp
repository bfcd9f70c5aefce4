// SPDX-License-Identifier: MIT
#include "elliptical/data/corrupt/corruption.h"

#include <algorithm>

#include "elliptical/base/errors.h"
#include "elliptical/base/name_table.h"
#include "elliptical/data/corrupt/operators_impl.h"

namespace elliptical::data {
namespace {

constexpr int64_t kImageNetSide = 224, kCifarSide = 32;
constexpr int64_t kSmallSide = 64;  ///< from here on the parameters of ImageNet

}  // namespace

const char* to_string(CorruptionGroup group) {
  return group == CorruptionGroup::kMain ? "main" : "extra";
}

const std::vector<CorruptionEntry>& corruption_table() {
  constexpr CorruptionGroup kMain = CorruptionGroup::kMain, kExtra = CorruptionGroup::kExtra;
  static const std::vector<CorruptionEntry> table = {
      {"gaussian_noise", "normal noise on every value", kMain, gaussian_noise},
      {"shot_noise", "counting noise of little light: Poisson", kMain, shot_noise},
      {"impulse_noise", "values that became 0 or 1", kMain, impulse_noise},
      {"defocus_blur", "a lens out of focus: disc", kMain, defocus_blur},
      {"glass_blur", "frosted glass: pixels take those of near places", kMain, glass_blur},
      {"motion_blur", "a camera that moves along a line", kMain, camera_motion_blur},
      {"zoom_blur", "a camera that moves towards the scene", kMain, zoom_blur},
      {"snow", "white streaks on a whitened picture", kMain, snow},
      {"frost", "a photograph of frost laid over it", kMain, frost},
      {"fog", "clouds of a plasma fractal", kMain, fog},
      {"brightness", "more value in HSV", kMain, brightness},
      {"contrast", "less distance from the mean colour", kMain, contrast},
      {"elastic_transform", "a random affine map, then a smooth random shift of each pixel", kMain,
       elastic_transform},
      {"pixelate", "fewer pixels, then as many as before", kMain, pixelate},
      {"jpeg_compression", "JPEG of low quality", kMain, jpeg_compression},
      {"speckle_noise", "normal noise in proportion to the value", kExtra, speckle_noise},
      {"gaussian_blur", "Gaussian filter", kExtra, gaussian_blur},
      {"spatter", "drops of water or mud on the lens", kExtra, spatter},
      {"saturate", "less or more saturation in HSV", kExtra, saturate},
  };
  return table;
}

const CorruptionEntry& find_corruption(const std::string& name) {
  return require_entry<UsageError>(corruption_table(), name, "corruption",
                                   " (run: elliptical list corruptions)");
}

Image corrupt(const Image& picture,
              const CorruptionEntry& corruption,
              int severity,
              RandomKey key,
              const FrostPictures* frost) {
  const std::string subject = std::string("corruption ") + corruption.name;
  if (severity < 1 || severity > kNumSeverities) {
    throw UsageError(subject + ": severity must be 1 to 5, got " + std::to_string(severity));
  }
  const int64_t side = std::min(picture.width, picture.height);
  if (side < 2) {
    throw UsageError(subject + ": picture must have at least 2 x 2 pixels, got " +
                     std::to_string(picture.width) + " x " + std::to_string(picture.height));
  }
  const bool is_small = side < kSmallSide;
  return corruption.apply(
      picture, {.severity = severity,
                .is_small = is_small,
                .scale = static_cast<double>(side) /
                         static_cast<double>(is_small ? kCifarSide : kImageNetSide),
                .key = key.derive(corruption.name).derive(static_cast<uint64_t>(severity)),
                .frost = frost});
}

}  // namespace elliptical::data
