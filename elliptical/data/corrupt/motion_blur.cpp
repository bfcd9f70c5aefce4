// SPDX-License-Identifier: MIT
#include "elliptical/data/corrupt/motion_blur_impl.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace elliptical::data {

std::vector<MotionTap> motion_taps(int64_t radius, double sigma, double degrees) {
  const double angle = degrees * std::numbers::pi / 180.0;
  std::vector<MotionTap> taps(2 * radius + 1);
  double sum = 0;
  for (size_t i = 0; i < taps.size(); ++i) {
    const auto distance = static_cast<double>(i);
    sum += taps[i].weight = std::exp(-distance * distance / (2 * sigma * sigma));
    taps[i].dx = static_cast<int64_t>(std::ceil(distance * std::cos(angle) - 0.5));
    taps[i].dy = static_cast<int64_t>(std::ceil(distance * std::sin(angle) - 0.5));
  }
  for (MotionTap& tap : taps) tap.weight /= sum;
  return taps;
}

std::vector<uint8_t> motion_blur(const std::vector<uint8_t>& bytes,
                                 int64_t width,
                                 int64_t height,
                                 int64_t channels,
                                 const std::vector<MotionTap>& taps) {
  std::vector<uint8_t> result(bytes.size());
  std::vector<float> sums(width * channels);
  for (int64_t y = 0; y < height; ++y) {
    std::fill(sums.begin(), sums.end(), 0.5f);  // rounds the truncation below
    for (const MotionTap& tap : taps) {
      const auto weight = static_cast<float>(tap.weight);
      const uint8_t* const row =
          bytes.data() + std::clamp<int64_t>(y + tap.dy, 0, height - 1) * width * channels;
      // Columns whose source is inside; those before and after take the edge.
      const int64_t begin = std::clamp<int64_t>(-tap.dx, 0, width);
      const int64_t end = std::clamp<int64_t>(width - tap.dx, 0, width);
      for (int64_t x = 0; x < begin; ++x) {
        for (int64_t c = 0; c < channels; ++c) sums[x * channels + c] += weight * row[c];
      }
      const uint8_t* const shifted = row + tap.dx * channels;
      for (int64_t i = begin * channels; i < end * channels; ++i) sums[i] += weight * shifted[i];
      const uint8_t* const edge = row + (width - 1) * channels;
      for (int64_t x = end; x < width; ++x) {
        for (int64_t c = 0; c < channels; ++c) sums[x * channels + c] += weight * edge[c];
      }
    }
    uint8_t* const to = result.data() + y * width * channels;
    for (int64_t i = 0; i < width * channels; ++i) {
      to[i] = static_cast<uint8_t>(std::min(sums[i], 255.0f));
    }
  }
  return result;
}

}  // namespace elliptical::data
