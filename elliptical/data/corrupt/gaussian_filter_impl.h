// SPDX-License-Identifier: MIT
//
// Blurring with a Gaussian: separable, sampled at whole pixels, normalised, cut off.
#pragma once

#include "elliptical/data/corrupt/field_impl.h"

namespace elliptical::data {

/// What lies outside the picture.
enum class Border {
  kNearest,  ///< the pixel at the edge
  kMirror,   ///< the picture mirrored, with the pixel at the edge twice
};

/// In place. The kernel reaches int(cut_off * sigma + 0.5) pixels to each side; sigma 0 changes
/// nothing.
void gaussian_filter(Field& field,
                     double sigma,
                     Border border = Border::kNearest,
                     double cut_off = 4.0);

}  // namespace elliptical::data
