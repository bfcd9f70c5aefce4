// SPDX-License-Identifier: MIT
//
// The parts of codec.cpp: one decoder for each format, and EXIF. They are given bytes that begin
// with the right signature, and throw DataError.
#pragma once

#include "elliptical/data/image/codec.h"

namespace elliptical::data {

Image decode_jpeg(std::span<const uint8_t> bytes,
                  const std::string& name,
                  const DecodeLimits& limits);
Image decode_png(std::span<const uint8_t> bytes,
                 const std::string& name,
                 const DecodeLimits& limits);

/// Throws DataError unless a picture of that size is within the limits.
void check_size(int64_t width, int64_t height, const std::string& name, const DecodeLimits& limits);

/// The orientation, 1 to 8, in a block of EXIF (a TIFF file); 1 where it says nothing sensible.
int tiff_orientation(std::span<const uint8_t> tiff);

/// The orientation in the APP1 segment of a JPEG file; 1 where there is none.
int jpeg_orientation(std::span<const uint8_t> jpeg);

/// The picture as it is meant to be seen.
Image oriented(Image image, int orientation);

}  // namespace elliptical::data
