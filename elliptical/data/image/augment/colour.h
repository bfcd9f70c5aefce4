// SPDX-License-Identifier: MIT
//
// Changing the colours of a picture in place, with the arithmetic of Pillow's ImageOps and
// ImageEnhance, to the bit: tables of 256 entries, and blends with a degraded copy.
#pragma once

#include <cstdint>

#include "elliptical/data/image/image.h"

namespace elliptical::data {

/// Stretches the range of each channel to [0, 255]; a channel with one value stays.
void auto_contrast(Image& picture);

/// Gives each channel as flat a histogram as a table can.
void equalize(Image& picture);

/// 255 - value.
void invert(Image& picture);

/// Keeps the `bits` highest bits, 0..8.
void posterize(Image& picture, int bits);

/// Inverts the values from `threshold` on, 0..256.
void solarize(Image& picture, int threshold);

/// Adds to the values below 128, up to 255.
void solarize_add(Image& picture, int amount);

/// degraded + factor * (picture - degraded), clipped and truncated; factor 1 changes nothing. The
/// degraded picture is grey, its mean grey everywhere, black, and smoothed.
void adjust_colour(Image& picture, double factor);
void adjust_contrast(Image& picture, double factor);
void adjust_brightness(Image& picture, double factor);
void adjust_sharpness(Image& picture, double factor);

/// Luma of one pixel, rounded: 0.299 R + 0.587 G + 0.114 B.
inline uint8_t grey(const uint8_t* pixel) {
  return static_cast<uint8_t>((19595 * pixel[0] + 38470 * pixel[1] + 7471 * pixel[2] + 32768) >>
                              16);
}

}  // namespace elliptical::data
