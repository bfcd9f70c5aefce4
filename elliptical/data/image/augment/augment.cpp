// SPDX-License-Identifier: MIT
#include "elliptical/data/image/augment/augment.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <sstream>
#include <utility>

#include "elliptical/base/distributions.h"
#include "elliptical/base/errors.h"
#include "elliptical/data/image/augment/colour.h"
#include "elliptical/data/image/augment/geometry.h"
#include "elliptical/data/image/planes.h"

namespace elliptical::data {
namespace {

Colour mean_colour(const PixelStatistics& statistics) {
  Colour colour;
  for (size_t i = 0; i < colour.size(); ++i) {
    colour[i] =
        static_cast<uint8_t>(std::clamp(std::nearbyint(255.0 * statistics.mean[i]), 0.0, 255.0));
  }
  return colour;
}

void check_areas(const char* group, double min_area, double max_area) {
  if (min_area <= max_area) return;
  std::ostringstream text;
  text << "data: augment." << group
       << ".min_area must be at most max_area, got min_area = " << min_area
       << ", max_area = " << max_area;
  throw ConfigError(text.str());
}

}  // namespace

void AugmentOptions::check(int64_t image_size) const {
  check_areas("crop", crop.min_area, crop.max_area);
  check_areas("erase", erase.min_area, erase.max_area);
  if (patches.probability > 0 && image_size % patches.size != 0) {
    throw ConfigError("data: augment.patches.size must divide the model's image_size, got size = " +
                      std::to_string(patches.size) +
                      ", image_size = " + std::to_string(image_size));
  }
}

void jitter_colours(Image& picture, double amount, RandomKey key) {
  using Adjust = void (*)(Image&, double);
  std::array<Adjust, 3> adjustments = {adjust_brightness, adjust_contrast, adjust_colour};
  RandomStream random(key);
  for (size_t i = adjustments.size(); i > 1; --i) {
    std::swap(adjustments[i - 1], adjustments[random.below(i)]);
  }
  for (const Adjust adjust : adjustments) {
    adjust(picture, draw_uniform(random, 1.0 - amount, 1.0 + amount));
  }
}

void augment(const Image& picture,
             const AugmentOptions& options,
             const PixelStatistics& statistics,
             int64_t size,
             RandomKey key,
             float* pixels) {
  Image seen = random_crop(picture, options.crop, size, key.derive("crop"));
  RandomStream random(key.derive("mirror"));
  if (draw_bool(random, options.mirror_probability)) mirror(seen);
  if (options.rand_augment.num_operations > 0) {
    rand_augment(seen, options.rand_augment, mean_colour(statistics), key.derive("rand augment"));
  } else if (options.colour_jitter > 0) {
    jitter_colours(seen, options.colour_jitter, key.derive("jitter"));
  }
  to_planes(seen, pixels);
  erase(pixels, size, size, options.erase, statistics, key.derive("erase"));
}

}  // namespace elliptical::data
