// SPDX-License-Identifier: MIT
//
// A picture in memory: RGB, 8 bits a channel, rows from top to bottom. Everything that reads,
// resizes, augments or damages pictures works on this; models get float tensors in [0, 1].
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace elliptical::data {

struct Image {
  static constexpr int64_t kChannels = 3;

  int64_t width = 0, height = 0;
  std::vector<uint8_t> pixels;  ///< (height, width, 3)

  Image() = default;
  Image(int64_t new_width, int64_t new_height, uint8_t value = 0)
      : width(new_width),
        height(new_height),
        pixels(static_cast<size_t>(new_width * new_height * kChannels), value) {}

  /// The three channels of one pixel.
  uint8_t* at(int64_t y, int64_t x) { return pixels.data() + (y * width + x) * kChannels; }
  const uint8_t* at(int64_t y, int64_t x) const {
    return pixels.data() + (y * width + x) * kChannels;
  }
  bool operator==(const Image&) const = default;
};

}  // namespace elliptical::data
