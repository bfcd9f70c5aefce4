// SPDX-License-Identifier: MIT
//
// The corruptions themselves; corruption.cpp puts them into a table.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "elliptical/base/random.h"
#include "elliptical/data/corrupt/corruption.h"
#include "elliptical/data/corrupt/field_impl.h"

namespace elliptical::data {

/// Parameters of the five severities.
template <class T>
using Severities = std::array<T, kNumSeverities>;

/// How a picture is to be damaged.
struct CorruptionContext {
  int severity = 1;
  bool is_small = false;  ///< parameters of CIFAR-10-C instead of ImageNet-C
  double scale = 1;       ///< shorter side / side that the parameters are for
  RandomKey key{0};
  const FrostPictures* frost = nullptr;

  template <class T>
  const T& choose(const Severities<T>& imagenet, const Severities<T>& cifar) const {
    return (is_small ? cifar : imagenet)[severity - 1];
  }
  /// A whole number of pixels, at least 1.
  int64_t pixels(double length) const { return std::max<int64_t>(1, std::llrint(length * scale)); }
};

// corrupt/noise.cpp
Image gaussian_noise(const Image& picture, const CorruptionContext& context);
Image shot_noise(const Image& picture, const CorruptionContext& context);
Image impulse_noise(const Image& picture, const CorruptionContext& context);
Image speckle_noise(const Image& picture, const CorruptionContext& context);
// corrupt/blur.cpp
Image gaussian_blur(const Image& picture, const CorruptionContext& context);
Image defocus_blur(const Image& picture, const CorruptionContext& context);
Image glass_blur(const Image& picture, const CorruptionContext& context);
Image camera_motion_blur(const Image& picture, const CorruptionContext& context);
Image zoom_blur(const Image& picture, const CorruptionContext& context);
// corrupt/weather.cpp
Image snow(const Image& picture, const CorruptionContext& context);
Image frost(const Image& picture, const CorruptionContext& context);
Image fog(const Image& picture, const CorruptionContext& context);
// corrupt/light.cpp
Image brightness(const Image& picture, const CorruptionContext& context);
Image contrast(const Image& picture, const CorruptionContext& context);
Image saturate(const Image& picture, const CorruptionContext& context);
// corrupt/digital.cpp
Image elastic_transform(const Image& picture, const CorruptionContext& context);
Image pixelate(const Image& picture, const CorruptionContext& context);
Image jpeg_compression(const Image& picture, const CorruptionContext& context);
// corrupt/spatter.cpp
Image spatter(const Image& picture, const CorruptionContext& context);

}  // namespace elliptical::data
