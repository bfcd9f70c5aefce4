// SPDX-License-Identifier: MIT
//
// Sampling a picture between its pixels.
#pragma once

#include <array>
#include <cmath>

#include "elliptical/data/corrupt/field_impl.h"

namespace elliptical::data {

struct Point {
  double x = 0, y = 0;
};

/// (x, y) -> (a x + b y + c, d x + e y + f)
struct PlaneMap {
  double a = 1, b = 0, c = 0, d = 0, e = 1, f = 0;

  Point operator()(Point p) const { return {a * p.x + b * p.y + c, d * p.x + e * p.y + f}; }
};

/// The affine map that takes three points, which are not in a line, to three others.
inline PlaneMap affine_map(const std::array<Point, 3>& from, const std::array<Point, 3>& to) {
  const Point u{from[1].x - from[0].x, from[1].y - from[0].y};
  const Point v{from[2].x - from[0].x, from[2].y - from[0].y};
  const double area = u.x * v.y - u.y * v.x;
  // One row of the map, from what it gives at the three points (Cramer's rule).
  const auto solve = [&](double t0, double t1, double t2) {
    const double p = ((t1 - t0) * v.y - (t2 - t0) * u.y) / area;
    const double q = ((t2 - t0) * u.x - (t1 - t0) * v.x) / area;
    return std::array<double, 3>{p, q, t0 - p * from[0].x - q * from[0].y};
  };
  const auto [a, b, c] = solve(to[0].x, to[1].x, to[2].x);
  const auto [d, e, f] = solve(to[0].y, to[1].y, to[2].y);
  return {a, b, c, d, e, f};
}

/// result(x, y) = field(source(x, y)), linear between the four pixels around that point. `extend`
/// is mirror_index or reflect_index: what lies outside.
template <class Extend, class Source>
Field warp(const Field& field, Extend extend, Source source) {
  Field result(field.width, field.height, field.channels);
  for (int64_t y = 0; y < field.height; ++y) {
    for (int64_t x = 0; x < field.width; ++x) {
      const Point from = source(x, y);
      const double left = std::floor(from.x), top = std::floor(from.y);
      const double right_weight = from.x - left, bottom_weight = from.y - top;
      auto column = static_cast<int64_t>(left), row = static_cast<int64_t>(top);
      int64_t next_column = column + 1, next_row = row + 1;
      const bool is_inside =
          column >= 0 && row >= 0 && next_column < field.width && next_row < field.height;
      if (!is_inside) {
        column = extend(column, field.width);
        next_column = extend(next_column, field.width);
        row = extend(row, field.height);
        next_row = extend(next_row, field.height);
      }
      const double* const a = field.at(row, column);
      const double* const b = field.at(row, next_column);
      const double* const c = field.at(next_row, column);
      const double* const d = field.at(next_row, next_column);
      double* const to = result.at(y, x);
      for (int64_t i = 0; i < field.channels; ++i) {
        const double upper = a[i] + right_weight * (b[i] - a[i]);
        const double lower = c[i] + right_weight * (d[i] - c[i]);
        to[i] = upper + bottom_weight * (lower - upper);
      }
    }
  }
  return result;
}

}  // namespace elliptical::data
