// SPDX-License-Identifier: MIT
//
// What corruptions compute on: numbers (height, width, channels), rows from top to bottom, pictures
// in [0, 1].
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "elliptical/data/image/image.h"

namespace elliptical::data {

struct Field {
  int64_t width = 0, height = 0, channels = 1;
  std::vector<double> values;

  Field() = default;
  Field(int64_t new_width, int64_t new_height, int64_t new_channels = 1)
      : width(new_width),
        height(new_height),
        channels(new_channels),
        values(static_cast<size_t>(new_width * new_height * new_channels)) {}

  double* at(int64_t y, int64_t x) { return values.data() + (y * width + x) * channels; }
  const double* at(int64_t y, int64_t x) const {
    return values.data() + (y * width + x) * channels;
  }
  /// Numbers in a row.
  int64_t row() const { return width * channels; }
};

inline Field to_field(const Image& picture) {
  Field field(picture.width, picture.height, Image::kChannels);
  std::transform(picture.pixels.begin(), picture.pixels.end(), field.values.begin(),
                 [](uint8_t value) { return value / 255.0; });
  return field;
}

/// Clips to [0, 1] and truncates to 8 bits, as the released pictures were made. A value that is a
/// whole number up to rounding errors counts as that number: without the tolerance, an operation
/// that changes nothing would darken some pixels by one step.
inline uint8_t to_byte(double value) {
  constexpr double kTolerance = 1e-9;
  return static_cast<uint8_t>(255.0 * std::clamp(value, 0.0, 1.0) + kTolerance);
}

inline Image to_image(const Field& field) {
  Image picture(field.width, field.height);
  std::transform(field.values.begin(), field.values.end(), picture.pixels.begin(), to_byte);
  return picture;
}

/// Index of an extended row: ... 2 1 0 0 1 2 ... n-1 n-1 n-2 ...
inline int64_t mirror_index(int64_t i, int64_t size) {
  i %= 2 * size;
  if (i < 0) i += 2 * size;
  return i < size ? i : 2 * size - 1 - i;
}

/// Index of an extended row: ... 2 1 0 1 2 ... n-1 n-2 ...
inline int64_t reflect_index(int64_t i, int64_t size) {
  if (size == 1) return 0;
  i %= 2 * size - 2;
  if (i < 0) i += 2 * size - 2;
  return i < size ? i : 2 * size - 2 - i;
}

}  // namespace elliptical::data
