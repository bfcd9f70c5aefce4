// SPDX-License-Identifier: MIT
#include "elliptical/data/image/augment/geometry.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace elliptical::data {
namespace {

/// The cubic through v1 at 0 and v2 at 1 with slopes v2 - v0 and v3 - v1. The order of the
/// operations decides the last bit, and by it where a value is truncated.
double cubic(double v0, double v1, double v2, double v3, double t) {
  const double linear = -v0 + v2;
  const double square = 2 * (v0 - v1) + v2 - v3;
  const double cube = -v0 + v1 - v2 + v3;
  return v1 + t * (linear + t * (square + t * cube));
}

uint8_t truncate(double value) {
  if (value <= 0.0) return 0;
  return value >= 255.0 ? 255 : static_cast<uint8_t>(value);
}

/// The four indices around a position, kept inside [0, size).
std::array<int64_t, 4> neighbours(int64_t first, int64_t size) {
  std::array<int64_t, 4> result;
  for (int64_t i = 0; i < 4; ++i) result[i] = std::clamp<int64_t>(first + i, 0, size - 1);
  return result;
}

/// The picture at (x, y), which lies inside it.
void sample(const Image& picture, double x, double y, uint8_t* to) {
  x -= 0.5;
  y -= 0.5;
  const double column = std::floor(x), row = std::floor(y);
  const auto columns = neighbours(static_cast<int64_t>(column) - 1, picture.width);
  const auto rows = neighbours(static_cast<int64_t>(row) - 1, picture.height);
  for (int64_t channel = 0; channel < Image::kChannels; ++channel) {
    std::array<double, 4> across;
    for (int64_t i = 0; i < 4; ++i) {
      const uint8_t* const line = picture.at(rows[i], 0) + channel;
      across[i] = cubic(line[columns[0] * 3], line[columns[1] * 3], line[columns[2] * 3],
                        line[columns[3] * 3], x - column);
    }
    to[channel] = truncate(cubic(across[0], across[1], across[2], across[3], y - row));
  }
}

/// Pillow rounds the cosine and the sine to 15 digits, so that right angles are exact.
double round_digits(double value) { return std::nearbyint(value * 1e15) / 1e15; }

}  // namespace

void mirror(Image& picture) {
  for (int64_t y = 0; y < picture.height; ++y) {
    for (int64_t x = 0; x < picture.width / 2; ++x) {
      uint8_t* const left = picture.at(y, x);
      std::swap_ranges(left, left + Image::kChannels, picture.at(y, picture.width - 1 - x));
    }
  }
}

Image pad(const Image& picture, int64_t border, Colour fill) {
  Image result(picture.width + 2 * border, picture.height + 2 * border);
  for (int64_t y = 0; y < result.height; ++y) {
    for (int64_t x = 0; x < result.width; ++x) std::copy_n(fill.data(), 3, result.at(y, x));
  }
  for (int64_t y = 0; y < picture.height; ++y) {
    std::copy_n(picture.at(y, 0), picture.width * Image::kChannels, result.at(y + border, border));
  }
  return result;
}

Image transform(const Image& picture, const AffineMap& map, Colour fill) {
  const auto width = static_cast<double>(picture.width);
  const auto height = static_cast<double>(picture.height);
  Image result(picture.width, picture.height);
  for (int64_t row = 0; row < result.height; ++row) {
    for (int64_t column = 0; column < result.width; ++column) {
      const double x = static_cast<double>(column) + 0.5;
      const double y = static_cast<double>(row) + 0.5;
      const double from_x = map.a * x + map.b * y + map.c;
      const double from_y = map.d * x + map.e * y + map.f;
      uint8_t* const to = result.at(row, column);
      if (from_x >= 0 && from_x < width && from_y >= 0 && from_y < height) {
        sample(picture, from_x, from_y, to);
      } else {
        std::copy_n(fill.data(), 3, to);
      }
    }
  }
  return result;
}

AffineMap rotation(double degrees, int64_t width, int64_t height) {
  // In Python, -27 % 360 is 333: the same rotation, another last bit.
  const double turn = degrees - 360.0 * std::floor(degrees / 360.0);
  const double angle = -(turn * (std::numbers::pi / 180.0));
  const double cosine = round_digits(std::cos(angle)), sine = round_digits(std::sin(angle));
  const double x = static_cast<double>(width) / 2, y = static_cast<double>(height) / 2;
  return {.a = cosine,
          .b = sine,
          .c = cosine * -x + sine * -y + x,
          .d = -sine,
          .e = cosine,
          .f = -sine * -x + cosine * -y + y};
}

}  // namespace elliptical::data
