// SPDX-License-Identifier: MIT
#include "elliptical/data/image/augment/patches.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "elliptical/base/distributions.h"

namespace elliptical::data {
namespace {

/// One channel of one patch: `first` points to its upper left pixel in rows of `stride`.
struct PatchPlane {
  float* first;
  int64_t stride, size;
  float* row(int64_t y) const { return first + y * stride; }
};

/// A square, in pixels.
struct Square {
  double left = 0, top = 0, side = 0;
};

/// Value at a point between pixels (x, y) of (size, size).
double bilinear(const std::vector<float>& from, int64_t size, double x, double y) {
  const auto x0 = std::clamp<int64_t>(static_cast<int64_t>(x), 0, size - 1),
             y0 = std::clamp<int64_t>(static_cast<int64_t>(y), 0, size - 1);
  const int64_t x1 = std::min(x0 + 1, size - 1), y1 = std::min(y0 + 1, size - 1);
  const double u = x - static_cast<double>(x0), v = y - static_cast<double>(y0);
  const double top = (1 - u) * from[y0 * size + x0] + u * from[y0 * size + x1];
  const double bottom = (1 - u) * from[y1 * size + x0] + u * from[y1 * size + x1];
  return (1 - v) * top + v * bottom;
}

void stretch(const PatchPlane& plane, const Square& box) {
  const int64_t P = plane.size;
  std::vector<float> before(P * P);
  for (int64_t y = 0; y < P; ++y) std::copy_n(plane.row(y), P, before.begin() + y * P);
  const double step = P > 1 ? (box.side - 1) / static_cast<double>(P - 1) : 0;
  for (int64_t y = 0; y < P; ++y) {
    for (int64_t x = 0; x < P; ++x) {
      plane.row(y)[x] =
          static_cast<float>(bilinear(before, P, box.left + step * static_cast<double>(x),
                                      box.top + step * static_cast<double>(y)));
    }
  }
}

}  // namespace

void augment_patches(float* pixels,
                     int64_t side,
                     const PatchOptions& options,
                     const PixelStatistics& statistics,
                     RandomKey key) {
  if (options.probability == 0) return;
  const int64_t P = options.size, grid = side / P;
  std::vector<double> noise(P);
  for (int64_t patch = 0; patch < grid * grid; ++patch) {
    RandomStream random(key.derive(static_cast<uint64_t>(patch)));
    const bool crops = draw_bool(random, options.probability),
               is_noisy = draw_bool(random, options.probability),
               mirrors = draw_bool(random, options.probability);
    Square box{.side =
                   std::sqrt(draw_uniform(random, options.min_area, 1)) * static_cast<double>(P)};
    // A box of less than a pixel shows one pixel.
    box.side = std::max(box.side, 1.0);
    box.left = draw_uniform(random, 0, static_cast<double>(P) - box.side);
    box.top = draw_uniform(random, 0, static_cast<double>(P) - box.side);
    for (int64_t channel = 0; channel < 3; ++channel) {
      const PatchPlane plane{
          .first = pixels + (channel * side + patch / grid * P) * side + patch % grid * P,
          .stride = side,
          .size = P};
      if (crops) stretch(plane, box);
      for (int64_t y = 0; y < P; ++y) {
        float* const row = plane.row(y);
        if (is_noisy) {
          draw_normals(random, 0, options.noise * statistics.std[static_cast<size_t>(channel)],
                       noise.data(), P);
          for (int64_t x = 0; x < P; ++x) row[x] += static_cast<float>(noise[x]);
        }
        if (mirrors) std::reverse(row, row + P);
      }
    }
  }
  for (int64_t i = 0; i < 3 * side * side; ++i) pixels[i] = std::clamp(pixels[i], 0.0f, 1.0f);
}

}  // namespace elliptical::data
