// SPDX-License-Identifier: MIT
//
// Pictures for tests that need some.
#pragma once

#include <cmath>
#include <cstdint>

#include "elliptical/base/random.h"
#include "elliptical/data/image/image.h"

namespace elliptical::test {

/// Every value uniform in 0..255.
inline data::Image noise_picture(int64_t width, int64_t height, uint64_t seed) {
  data::Image picture(width, height);
  RandomStream random{RandomKey(seed)};
  for (uint8_t& value : picture.pixels) value = static_cast<uint8_t>(random.below(256));
  return picture;
}

/// Waves of several lengths, of other phases in each channel: smooth, with all kinds of edges.
inline data::Image wave_picture(int64_t width, int64_t height) {
  data::Image picture(width, height);
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      for (int64_t c = 0; c < 3; ++c) {
        const auto u = static_cast<double>(x) / static_cast<double>(width);
        const auto v = static_cast<double>(y) / static_cast<double>(height);
        const auto phase = static_cast<double>(c);
        const double wave = 0.5 + 0.25 * std::sin(9 * u + phase) * std::cos(7 * v - phase) +
                            0.2 * std::sin(31 * u * v + 2 * phase);
        picture.at(y, x)[c] = static_cast<uint8_t>(255.0 * wave);
      }
    }
  }
  return picture;
}

}  // namespace elliptical::test
