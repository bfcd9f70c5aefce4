// SPDX-License-Identifier: MIT
//
// Random erasing (Zhong et al. 2020): now and then a box of a training picture becomes noise. The
// recipe fills normalised pixels with N(0, 1); in pixels that is mean + std N(0, 1), which may lie
// outside [0, 1].
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "elliptical/base/options.h"
#include "elliptical/base/random.h"
#include "elliptical/data/image/augment/geometry.h"

namespace elliptical::data {

/// What a model normalises pixels in [0, 1] with, per channel.
struct PixelStatistics {
  std::array<double, 3> mean = {0.485, 0.456, 0.406};  ///< of ImageNet
  std::array<double, 3> std = {0.229, 0.224, 0.225};
};

struct EraseOptions {
  double probability = 0.25;
  double min_area = 0.02;
  double max_area = 1.0 / 3.0;
  double max_aspect = 1.0 / 0.3;

  void visit(FieldList& fields) {
    fields.add("probability", probability, "of a box of noise in a picture", between(0, 1));
    fields.add("min_area", min_area, "smallest box / picture", between(0, 1));
    fields.add("max_area", max_area, "largest box / picture", between(0, 1));
    fields.add("max_aspect", max_aspect, "longest box: height / width or its inverse",
               between(1, 1e6));
  }
};

/// The box to be erased; nothing if there is none, or none that fitted in ten tries.
std::optional<Box> draw_erased_box(const EraseOptions& options,
                                   int64_t width,
                                   int64_t height,
                                   RandomStream& random);

/// Erases a box of `pixels`, (3, height, width), with the probability of the options.
void erase(float* pixels,
           int64_t width,
           int64_t height,
           const EraseOptions& options,
           const PixelStatistics& statistics,
           RandomKey key);

}  // namespace elliptical::data
