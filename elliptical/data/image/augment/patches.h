// SPDX-License-Identifier: MIT
//
// Patch-wise augmentation (RVT, Mao et al. 2022): the squares that become tokens are changed one by
// one, each in three ways with a probability of its own, in this order:
//   crop    a square of random size and place inside the patch, stretched over it (bilinear,
//           corners on corners)
//   noise   normal, in units of normalised pixels
//   mirror  left and right exchanged
// Then pixels are cut to [0, 1]. It comes after mixing. RVT draws boxes of whole pixels, which in a
// patch of 16 are 15 or 16 wide; ours are not rounded, so that smaller patches change too.
#pragma once

#include <cstdint>

#include "elliptical/base/option_limits.h"
#include "elliptical/base/options.h"
#include "elliptical/base/random.h"
#include "elliptical/data/image/augment/erase.h"

namespace elliptical::data {

struct PatchOptions {
  double probability = 0.0;
  int64_t size = 16;
  double min_area = 0.85;
  double noise = 0.01;

  void visit(FieldList& fields) {
    fields.add("probability", probability,
               "of a patch to be cropped, to get noise, to be mirrored; 0.1 in RVT, 0: none",
               between(0, 1));
    fields.add("size", size, "side of a patch", between(1, kMostSide));
    fields.add("min_area", min_area, "smallest crop / patch",
               Limits{.low = 0, .high = 1, .open_low = true});
    fields.add("noise", noise, "deviation of normalised pixels", between(0, 1e6));
  }
};

/// pixels (3, side, side) in place; `side` is a multiple of the patch's. Nothing happens where the
/// probability is 0.
void augment_patches(float* pixels,
                     int64_t side,
                     const PatchOptions& options,
                     const PixelStatistics& statistics,
                     RandomKey key);

}  // namespace elliptical::data
