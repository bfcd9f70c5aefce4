// SPDX-License-Identifier: MIT
//
// Pictures in files: JPEG and PNG, told apart by their content, never by their name. Whatever a
// file holds (grey, palette, 16 bits, CMYK, interlaced, animated: the first frame) becomes RGB of 8
// bits. Transparency is dropped, the rotation that EXIF asks for is applied. Decoded pixels are
// those of Pillow. Nothing in a file can make the decoder crash or print; what a header claims is
// checked against the limits before memory is taken. What a picture does not need (text, profiles)
// is not unpacked, and passes over its pixels are limited: a file takes seconds at most.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "elliptical/data/image/image.h"

namespace elliptical::data {

struct DecodeLimits {
  int64_t max_pixels = 64'000'000;
  int64_t max_side = 65'500;  ///< what JPEG can hold
  /// Scans of a JPEG times its pixels, in units of max_pixels: what bounds the time of a decoder.
  int64_t max_passes = 16;
};

/// Throws DataError "NAME: what must hold, what is" for anything but a complete JPEG or PNG picture
/// within the limits.
Image decode_image(std::span<const uint8_t> bytes,
                   const std::string& name,
                   const DecodeLimits& limits = {});

/// `quality` 1 to 100, colours at half resolution (4:2:0).
std::vector<uint8_t> encode_jpeg(const Image& image, int quality);

/// Without loss.
std::vector<uint8_t> encode_png(const Image& image);

}  // namespace elliptical::data
