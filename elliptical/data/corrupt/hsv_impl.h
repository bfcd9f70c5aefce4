// SPDX-License-Identifier: MIT
//
// Hue, saturation, value; everything in [0, 1].
#pragma once

#include <algorithm>
#include <array>
#include <cmath>

namespace elliptical::data {

/// {h, s, v} of {r, g, b}. The hue of grey is 0.
inline std::array<double, 3> to_hsv(const double* rgb) {
  const double r = rgb[0], g = rgb[1], b = rgb[2];
  const double high = std::max({r, g, b});
  const double range = high - std::min({r, g, b});
  if (range == 0) return {0, 0, high};
  double sixths = 4 + (r - g) / range;
  if (high == r) {
    sixths = (g - b) / range;
  } else if (high == g) {
    sixths = 2 + (b - r) / range;
  }
  const double hue = sixths / 6;
  return {hue - std::floor(hue), range / high, high};
}

inline std::array<double, 3> to_rgb(const std::array<double, 3>& hsv) {
  const auto [h, s, v] = hsv;
  const double sixth = std::floor(h * 6), f = h * 6 - sixth;
  const double p = v * (1 - s), q = v * (1 - f * s), t = v * (1 - (1 - f) * s);
  switch (static_cast<int>(sixth) % 6) {
    case 0:
      return {v, t, p};
    case 1:
      return {q, v, p};
    case 2:
      return {p, v, t};
    case 3:
      return {p, q, v};
    case 4:
      return {t, p, v};
    default:
      return {v, p, q};
  }
}

}  // namespace elliptical::data
