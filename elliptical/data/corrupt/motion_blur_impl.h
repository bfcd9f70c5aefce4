// SPDX-License-Identifier: MIT
//
// The blur of a camera that moves along a line, one-sided as in ImageMagick, which made the
// released pictures: output(p) = sum_i k_i input(p + offset_i), k_i ~ exp(-i^2 / 2 sigma^2).
#pragma once

#include <vector>

#include "elliptical/data/image/image.h"

namespace elliptical::data {

struct MotionTap {
  double weight = 0;
  int64_t dx = 0, dy = 0;
};

/// The 2 radius + 1 taps of a motion in that direction; their weights have the sum 1.
std::vector<MotionTap> motion_taps(int64_t radius, double sigma, double degrees);

/// (height, width, channels) bytes, rounded to 8 bits; the edge is repeated outside.
std::vector<uint8_t> motion_blur(const std::vector<uint8_t>& bytes,
                                 int64_t width,
                                 int64_t height,
                                 int64_t channels,
                                 const std::vector<MotionTap>& taps);

}  // namespace elliptical::data
