// SPDX-License-Identifier: MIT
//
// The middle of a picture, enlarged to its size.
#pragma once

#include "elliptical/data/corrupt/field_impl.h"

namespace elliptical::data {

/// factor >= 1. Per axis: the central ceil(n / factor) pixels, enlarged linearly to
/// m = round(ceil(n / factor) factor) with the corners kept (input = output (n - 1) / (m - 1)), of
/// which the central n are left.
Field zoom_centre(const Field& field, double factor);

}  // namespace elliptical::data
