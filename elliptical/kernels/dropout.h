// SPDX-License-Identifier: MIT
//
// What dropout keeps: attention probabilities as a pure function of (seed, b*H+h, n, j), elements
// of a tensor as one of (seed, index), so that backward, reference and every instruction set see
// the same mask, whatever the blocking or thread count. The generator is Philox4x32-10 (Salmon et
// al., "Parallel random numbers: as easy as 1, 2, 3", 2011). `scaled_dropout` applies it to an array;
// its slow, obvious version is dropout_reference.h.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>

#include "elliptical/kernels/parallel.h"

namespace elliptical::kernels {

using PhiloxCounter = std::array<uint32_t, 4>;
using PhiloxKey = std::array<uint32_t, 2>;

inline constexpr uint32_t kPhiloxMultiplier0 = 0xD2511F53u;
inline constexpr uint32_t kPhiloxMultiplier1 = 0xCD9E8D57u;
inline constexpr uint32_t kPhiloxWeyl0 = 0x9E3779B9u;
inline constexpr uint32_t kPhiloxWeyl1 = 0xBB67AE85u;
inline constexpr int kPhiloxRounds = 10;

/// Four independent uniform 32-bit words for one counter.
inline PhiloxCounter philox4x32(PhiloxCounter counter, PhiloxKey key) {
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const uint64_t product0 = uint64_t{kPhiloxMultiplier0} * counter[0];
    const uint64_t product1 = uint64_t{kPhiloxMultiplier1} * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<uint32_t>(product0)};
    key[0] += kPhiloxWeyl0;
    key[1] += kPhiloxWeyl1;
  }
  return counter;
}

/// A word of the generator below `threshold` drops what it was drawn for.
struct DropoutRule {
  PhiloxKey key{};
  uint32_t threshold = 0;   ///< p * 2^32; 0 keeps everything
  double keep_scale = 1.0;  ///< 1 / (1 - p)

  DropoutRule() = default;
  DropoutRule(double p, uint64_t seed)
      : key{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)},
        threshold(static_cast<uint32_t>(std::ldexp(p, 32))),
        keep_scale(1.0 / (1.0 - p)) {}

  bool active() const { return threshold != 0; }
};

/// The dropout of one attention call. Key j of query n in head bh = b*H + h takes word j % 4 of
/// counter (n, j / 4, bh).
struct Dropout : DropoutRule {
  using DropoutRule::DropoutRule;

  /// The words of keys j .. j+3, j a multiple of 4. Counters are 32 bits wide: n and j / 4 stay
  /// below 2^32.
  PhiloxCounter words(int64_t bh, int64_t n, int64_t j) const {
    return philox4x32(
        {static_cast<uint32_t>(n), static_cast<uint32_t>(j / 4), static_cast<uint32_t>(bh),
         static_cast<uint32_t>(static_cast<uint64_t>(bh) >> 32)},
        key);
  }

  bool keeps(int64_t bh, int64_t n, int64_t j) const {
    return words(bh, n, j)[static_cast<size_t>(j % 4)] >= threshold;
  }
};

/// The dropout of the elements of one tensor. Element i = 64 block + 16 w + lane takes word w of
/// counter (lane, block): four vectors of consecutive elements need no shuffle.
struct ElementDropout : DropoutRule {
  static constexpr int64_t kBlock = 64, kLanesOfBlock = 16;
  using DropoutRule::DropoutRule;

  int64_t offset = 0;  ///< number of the first element, for a call that sees a part of a tensor

  /// The rule for a part that starts `first` elements later.
  ElementDropout from(int64_t first) const {
    ElementDropout rule = *this;
    rule.offset += first;
    return rule;
  }

  bool keeps(int64_t i) const {
    i += offset;
    const auto block = static_cast<uint64_t>(i / kBlock);
    const PhiloxCounter words =
        philox4x32({static_cast<uint32_t>(i % kLanesOfBlock), static_cast<uint32_t>(block),
                    static_cast<uint32_t>(block >> 32), 0},
                   key);
    return words[static_cast<size_t>(i % kBlock / kLanesOfBlock)] >= threshold;
  }
};

/// y = factor * drop(x): dropout itself, its gradient, and the gradient of embed's rows. y may be
/// x.
void scaled_dropout(int64_t count,
                    const float* x,
                    double factor,
                    const ElementDropout& dropout,
                    float* y,
                    const ParallelFor& parallel_for);

}  // namespace elliptical::kernels
