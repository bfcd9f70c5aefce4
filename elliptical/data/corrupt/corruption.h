// SPDX-License-Identifier: MIT
//
// Common corruptions of pictures (Hendrycks and Dietterich 2019) at five severities: the 15 of
// ImageNet-C and its 4 extra ones. Pictures whose shorter side is below 64 are damaged with the
// parameters of CIFAR-10-C, others with those of ImageNet-C; lengths in pixels are scaled from
// sides of 32 and 224 to the side of the picture. Damage is a function of picture, corruption,
// severity and key, so every model is measured on the same pictures:
//     corrupt(picture, find_corruption("snow"), 3, key.derive(index_of_picture), nullptr);
#pragma once

#include <string>
#include <vector>

#include "elliptical/base/random.h"
#include "elliptical/data/corrupt/frost_pictures.h"
#include "elliptical/data/image/image.h"

namespace elliptical::data {

constexpr int kNumSeverities = 5;

enum class CorruptionGroup { kMain, kExtra };
const char* to_string(CorruptionGroup group);

struct CorruptionContext;  // private: severity, size, key, frost

struct CorruptionEntry {
  const char* name;
  const char* description;
  CorruptionGroup group;
  Image (*apply)(const Image& picture, const CorruptionContext& context);
};

/// All 19; the main ones first, in the order of the paper's tables.
const std::vector<CorruptionEntry>& corruption_table();

/// UsageError with the nearest name when there is none.
const CorruptionEntry& find_corruption(const std::string& name);

/// A damaged copy of the same size. `severity` 1 to 5, sides at least 2; UsageError otherwise. Only
/// `frost` needs the frost pictures: SetupError when they are not given. The same key may be used
/// for all corruptions and severities.
Image corrupt(const Image& picture,
              const CorruptionEntry& corruption,
              int severity,
              RandomKey key,
              const FrostPictures* frost = nullptr);

/// JPEG and back. The released pictures went through quality 85 after they were damaged.
constexpr int kReleasedQuality = 85;
Image jpeg_round_trip(const Image& picture, int quality);

}  // namespace elliptical::data
