// SPDX-License-Identifier: MIT
//
// One training picture, in the order of the DeiT recipe: crop, mirror, RandAugment (or colour
// jitter where there is no RandAugment), pixels in [0, 1], random erasing. Mixing a batch (mix.h)
// comes after it, then what is done to single patches (patches.h); which pictures are in it says
// sampler.h. Everything drawn is a function of the
// key, so neither threads nor resuming change a picture:
//     augment(picture, options, statistics, 224, key.derive(step).derive(place_in_batch), pixels);
#pragma once

#include <cstdint>

#include "elliptical/base/options.h"
#include "elliptical/base/random.h"
#include "elliptical/data/image/augment/erase.h"
#include "elliptical/data/image/augment/patches.h"
#include "elliptical/data/image/augment/rand_augment.h"
#include "elliptical/data/image/augment/random_crop.h"
#include "elliptical/data/image/image.h"

namespace elliptical::data {

struct AugmentOptions {
  CropOptions crop;
  double mirror_probability = 0.5;
  RandAugmentOptions rand_augment;
  double colour_jitter = 0.4;
  EraseOptions erase;
  PatchOptions patches;

  void visit(FieldList& fields) {
    fields.add_group("crop", crop);
    fields.add("mirror_probability", mirror_probability, "of left and right exchanged",
               between(0, 1));
    fields.add_group("rand_augment", rand_augment);
    fields.add("colour_jitter", colour_jitter,
               "brightness, contrast and saturation change by up to this share; only where "
               "rand_augment.num_operations is 0",
               between(0, 1));
    fields.add_group("erase", erase);
    fields.add_group("patches", patches);
  }
  /// Throws ConfigError when the options contradict each other, or pictures of `image_size`.
  void check(int64_t image_size) const;
};

/// Brightness, contrast and saturation by factors in [1 - amount, 1 + amount], in random order.
void jitter_colours(Image& picture, double amount, RandomKey key);

/// Writes pixels (3, size, size). Geometric operations fill with the mean colour of `statistics`.
void augment(const Image& picture,
             const AugmentOptions& options,
             const PixelStatistics& statistics,
             int64_t size,
             RandomKey key,
             float* pixels);

}  // namespace elliptical::data
