// SPDX-License-Identifier: MIT
//
// How large numbers of options may be. There is no number without ends: a field that is declared
// without one has that of its type. Fields that sizes of tensors and lengths of loops come from
// have closer ones, far beyond all that was ever trained, so that whatever product of them the
// program forms fits 64 bits.
#pragma once

#include "elliptical/base/options.h"

namespace elliptical {

/// Ends of whole numbers and of numbers that have no closer ones: products of two still fit 64
/// bits, and a number is one in float32, too.
inline constexpr double kMostWhole = 1e9, kMostNumber = 1e30;
inline constexpr size_t kMostElements = 10'000;  ///< of a list

inline constexpr double kMostLayers = 1000, kMostHeads = 4096, kMostWidth = 1 << 16,
                        kMostRatio = 256, kMostTokens = 1 << 20, kMostSide = 1 << 13,
                        kMostBatch = 1 << 20, kMostPasses = 1'000'000;

/// (low, high]
inline Limits above(double low, double high) {
  return {.low = low, .high = high, .open_low = true};
}

/// What only chooses random numbers: every whole number from `low`.
inline Limits any_seed(double low = 0) { return {.low = low, .high = 0x1p63}; }

/// What a field may be: its own limits, and where it has none those of its type.
Limits limits_of(const Field& field);

}  // namespace elliptical
