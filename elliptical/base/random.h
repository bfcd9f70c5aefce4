// SPDX-License-Identifier: MIT
//
// Randomness without hidden state: every random number is a function of a key and a counter, so
// that resuming, re-ordering and threads change nothing. A key is made from the run's seed and
// from what it is for; whoever needs more keys derives them.
//
//     RandomKey key = RandomKey(seed).derive("word swap").derive(line);
//     RandomStream random(key);
//     const uint64_t position = random.below(10);
#pragma once

#include <cstdint>
#include <string_view>

namespace elliptical {

/// The finalizer of SplitMix64 (Steele, Lea, Flood 2014): a bijection that mixes all bits.
constexpr uint64_t mix_bits(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

class RandomKey {
 public:
  constexpr explicit RandomKey(uint64_t seed) : bits_(mix_bits(seed + 0x9E3779B97F4A7C15u)) {}

  /// The key of sub-purpose number `index`.
  constexpr RandomKey derive(uint64_t index) const {
    return RandomKey(bits_ ^ mix_bits(index + 0xD1B54A32D192ED03u));
  }
  /// The key of a named purpose.
  constexpr RandomKey derive(std::string_view purpose) const {
    uint64_t hash = 0xCBF29CE484222325u;  // FNV-1a
    for (const char c : purpose) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
    return derive(hash);
  }

  constexpr uint64_t bits() const { return bits_; }

 private:
  uint64_t bits_;
};

/// Numbers of one key, one after the other.
class RandomStream {
 public:
  constexpr explicit RandomStream(RandomKey key) : state_(key.bits()) {}

  constexpr uint64_t next() { return mix_bits(state_ += 0x9E3779B97F4A7C15u); }

  /// Uniform in [0, 1), 53 bits.
  constexpr double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

  /// Uniform in [0, bound), exactly: draws again where the last incomplete round would favour
  /// small numbers. bound > 0.
  constexpr uint64_t below(uint64_t bound) {
    const uint64_t excess = (~bound + 1) % bound;  // 2^64 mod bound
    while (true) {
      const uint64_t bits = next();
      if (bits >= excess) return bits % bound;
    }
  }

 private:
  uint64_t state_;
};

}  // namespace elliptical
