// SPDX-License-Identifier: MIT
//
// From a picture to what a model reads.
#pragma once

#include <cstdint>

#include "elliptical/data/image/image.h"

namespace elliptical::data {

/// (height, width, 3) bytes -> (3, height, width) pixels in [0, 1].
inline void to_planes(const Image& picture, float* pixels) {
  const int64_t count = picture.width * picture.height;
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t channel = 0; channel < Image::kChannels; ++channel) {
      pixels[channel * count + i] =
          static_cast<float>(picture.pixels[i * Image::kChannels + channel]) / 255.0f;
    }
  }
}

}  // namespace elliptical::data
