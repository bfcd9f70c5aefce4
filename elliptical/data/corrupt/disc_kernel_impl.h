// SPDX-License-Identifier: MIT
//
// The blur of a lens out of focus: a disc, slightly smoothed against aliasing.
#pragma once

#include "elliptical/data/corrupt/field_impl.h"

namespace elliptical::data {

/// A square kernel of odd side: 1 / area inside the circle, on a grid of -8..8, or -radius..radius
/// for larger radii, then smoothed by a Gaussian of 3 x 3 (5 x 5 for the larger) taps. The
/// smoothing reflects at the edge of the grid, as the released pictures were made: a disc that
/// touches the edge gains weight there, and kernels of radius 8 and 10 have the sum 1.013
/// and 1.011, not 1.
Field disc_kernel(double radius, double alias_sigma);

/// Correlation of each channel with a square kernel of odd side, reflected at the border.
Field correlate(const Field& field, const Field& kernel);

}  // namespace elliptical::data
