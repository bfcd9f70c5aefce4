// SPDX-License-Identifier: MIT
#include "elliptical/data/image/augment/erase.h"

#include <cmath>
#include <vector>

#include "elliptical/base/distributions.h"

namespace elliptical::data {

std::optional<Box> draw_erased_box(const EraseOptions& options,
                                   int64_t width,
                                   int64_t height,
                                   RandomStream& random) {
  constexpr int kTries = 10;
  if (!draw_bool(random, options.probability)) return std::nullopt;
  const double log_aspect = std::log(options.max_aspect);
  for (int i = 0; i < kTries; ++i) {
    const double area = draw_uniform(random, options.min_area, options.max_area) *
                        static_cast<double>(width * height);
    const double aspect = std::exp(draw_uniform(random, -log_aspect, log_aspect));
    Box box;
    box.height = std::llrint(std::sqrt(area * aspect));
    box.width = std::llrint(std::sqrt(area / aspect));
    if (box.width >= width || box.height >= height) continue;
    box.top = static_cast<int64_t>(random.below(height - box.height + 1));
    box.left = static_cast<int64_t>(random.below(width - box.width + 1));
    return box;
  }
  return std::nullopt;
}

void erase(float* pixels,
           int64_t width,
           int64_t height,
           const EraseOptions& options,
           const PixelStatistics& statistics,
           RandomKey key) {
  RandomStream random(key);
  const std::optional<Box> box = draw_erased_box(options, width, height, random);
  if (!box) return;
  std::vector<double> noise(box->width);
  for (size_t channel = 0; channel < statistics.mean.size(); ++channel) {
    for (int64_t y = box->top; y < box->top + box->height; ++y) {
      draw_normals(random, statistics.mean[channel], statistics.std[channel], noise.data(),
                   box->width);
      float* const to = pixels + (static_cast<int64_t>(channel) * height + y) * width + box->left;
      for (int64_t x = 0; x < box->width; ++x) to[x] = static_cast<float>(noise[x]);
    }
  }
}

}  // namespace elliptical::data
