// SPDX-License-Identifier: MIT
//
// The generator of dropout.h, one query per lane.
// Included once per SIMD target (Highway's -inl.h convention).

#if defined(ELLIPTICAL_KERNELS_PHILOX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ELLIPTICAL_KERNELS_PHILOX_INL_H_
#undef ELLIPTICAL_KERNELS_PHILOX_INL_H_
#else
#define ELLIPTICAL_KERNELS_PHILOX_INL_H_
#endif

#include "elliptical/kernels/dropout.h"
#include "elliptical/kernels/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace elliptical::kernels {
namespace HWY_NAMESPACE {

/// Four vectors of Philox words, for keys j .. j+3 (j a multiple of 4) of queries n .. n + lanes
/// - 1.
HWY_INLINE void PhiloxWords(const Dropout& dropout,
                            int64_t head_index,
                            int64_t n,
                            int64_t j,
                            hn::Vec<hn::RebindToUnsigned<Tag>> (&words)[4]) {
  const hn::RebindToUnsigned<Tag> tag;
#if HWY_TARGET == HWY_SCALAR
  const PhiloxCounter scalars = dropout.words(head_index, n, j);
  for (int w = 0; w < 4; ++w) words[w] = hn::Set(tag, scalars[static_cast<size_t>(w)]);
#else
  const hn::RepartitionToWide<decltype(tag)> wide;
  using U = hn::Vec<decltype(tag)>;
  const auto multiply = [&](U x, uint32_t factor, U& high) HWY_ATTR {
    const U f = hn::Set(tag, factor);
    const auto even = hn::MulEven(x, f);
    const auto odd = hn::MulEven(hn::BitCast(tag, hn::ShiftRight<32>(hn::BitCast(wide, x))), f);
    high = hn::OddEven(hn::BitCast(tag, odd), hn::BitCast(tag, hn::ShiftRight<32>(even)));
    return hn::OddEven(hn::BitCast(tag, hn::ShiftLeft<32>(odd)), hn::BitCast(tag, even));
  };
  U x0 = hn::Iota(tag, static_cast<uint32_t>(n));
  U x1 = hn::Set(tag, static_cast<uint32_t>(j / 4));
  U x2 = hn::Set(tag, static_cast<uint32_t>(head_index));
  U x3 = hn::Set(tag, static_cast<uint32_t>(static_cast<uint64_t>(head_index) >> 32));
  PhiloxKey key = dropout.key;
  for (int round = 0; round < kPhiloxRounds; ++round) {
    U high0, high1;
    const U low0 = multiply(x0, kPhiloxMultiplier0, high0);
    const U low1 = multiply(x2, kPhiloxMultiplier1, high1);
    x0 = hn::Xor(hn::Xor(high1, x1), hn::Set(tag, key[0]));
    x1 = low1;
    x2 = hn::Xor(hn::Xor(high0, x3), hn::Set(tag, key[1]));
    x3 = low0;
    key[0] += kPhiloxWeyl0;
    key[1] += kPhiloxWeyl1;
  }
  words[0] = x0;
  words[1] = x1;
  words[2] = x2;
  words[3] = x3;
#endif
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace elliptical::kernels
HWY_AFTER_NAMESPACE();

#endif
