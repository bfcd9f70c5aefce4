// SPDX-License-Identifier: MIT
//
// Resizing as Pillow did it up to version 12, bit for bit: published accuracies were measured on
// pictures that went through that resampler. For an axis of n input and m output pixels, with
// scale = n / m and filter f of support S:
//
//     centre(i) = (i + 0.5) scale         weight(i, j) ~ f((j + 0.5 - centre(i)) / max(scale, 1))
//
// over the j within S max(scale, 1) of the centre, normalised to sum 1 and rounded to multiples of
// 2^-22. Rows first, the result stored in 8 bits, then columns. Downsizing widens the filter, so it
// is antialiased. Crops are here too: they always go together.
#pragma once

#include <cstdint>

#include "elliptical/data/image/image.h"

namespace elliptical::data {

enum class Filter { kBox, kBilinear, kBicubic, kLanczos };

/// Throws std::invalid_argument for an empty picture or a size below 1.
Image resample(const Image& image, int64_t width, int64_t height, Filter filter);

/// The shorter side becomes `side`, the longer one int(side * longer / shorter).
Image resize_shorter(const Image& image, int64_t side, Filter filter);

/// Throws std::invalid_argument unless the rectangle is inside the picture and not empty.
Image crop(const Image& image, int64_t left, int64_t top, int64_t width, int64_t height);

/// The square in the middle; where there is no middle, the even one of the two offsets, as Python's
/// `round` chooses. Throws std::invalid_argument when `side` is longer than one of the sides.
Image center_crop(const Image& image, int64_t side);

}  // namespace elliptical::data
