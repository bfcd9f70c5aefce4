// SPDX-License-Identifier: MIT
//
// Moving the pixels of a picture: mirror, pad, affine maps. The arithmetic is that of Pillow,
// with which the models of the paper were trained, to the bit.
#pragma once

#include <array>
#include <cstdint>

#include "elliptical/data/image/image.h"

namespace elliptical::data {

using Colour = std::array<uint8_t, 3>;

struct Box {
  int64_t left = 0, top = 0, width = 0, height = 0;
  bool operator==(const Box&) const = default;
};

/// Left and right exchanged.
void mirror(Image& picture);

/// `border` pixels of that colour on each side.
Image pad(const Image& picture, int64_t border, Colour fill);

/// Source of the output pixel with centre (x, y) = (column + 1/2, row + 1/2):
/// (a x + b y + c, d x + e y + f).
struct AffineMap {
  double a = 1, b = 0, c = 0;
  double d = 0, e = 1, f = 0;
};

/// Same size as the picture; bicubic with the four neighbours (the cubic with slope -1 that Pillow
/// has here, not that of its resampling); `fill` where the source point lies outside.
Image transform(const Image& picture, const AffineMap& map, Colour fill);

/// Counter-clockwise about the centre.
AffineMap rotation(double degrees, int64_t width, int64_t height);

}  // namespace elliptical::data
