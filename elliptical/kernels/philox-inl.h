// SPDX-License-Identifier: MIT
//
// The generator of dropout.h, one counter per lane: queries of attention, elements of a tensor.
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

using UintVec = hn::Vec<hn::RebindToUnsigned<Tag>>;

#if HWY_TARGET != HWY_SCALAR
/// The ten rounds, one counter per lane: x[0] .. x[3] become its four words.
HWY_INLINE void PhiloxRounds(PhiloxKey key, UintVec (&x)[4]) {
  const hn::RebindToUnsigned<Tag> tag;
  const hn::RepartitionToWide<decltype(tag)> wide;
  const auto multiply = [&](UintVec factor, uint32_t constant, UintVec& high) HWY_ATTR {
    const UintVec f = hn::Set(tag, constant);
    const auto even = hn::MulEven(factor, f);
    const auto odd =
        hn::MulEven(hn::BitCast(tag, hn::ShiftRight<32>(hn::BitCast(wide, factor))), f);
    high = hn::OddEven(hn::BitCast(tag, odd), hn::BitCast(tag, hn::ShiftRight<32>(even)));
    return hn::OddEven(hn::BitCast(tag, hn::ShiftLeft<32>(odd)), hn::BitCast(tag, even));
  };
  for (int round = 0; round < kPhiloxRounds; ++round) {
    UintVec high0, high1;
    const UintVec low0 = multiply(x[0], kPhiloxMultiplier0, high0);
    const UintVec low1 = multiply(x[2], kPhiloxMultiplier1, high1);
    x[0] = hn::Xor(hn::Xor(high1, x[1]), hn::Set(tag, key[0]));
    x[1] = low1;
    x[2] = hn::Xor(hn::Xor(high0, x[3]), hn::Set(tag, key[1]));
    x[3] = low0;
    key[0] += kPhiloxWeyl0;
    key[1] += kPhiloxWeyl1;
  }
}
#endif

/// Four vectors of Philox words, for keys j .. j + 3 (j a multiple of 4) of queries
/// n .. n + lanes - 1.
HWY_INLINE void PhiloxWords(
    const Dropout& dropout, int64_t head_index, int64_t n, int64_t j, UintVec (&words)[4]) {
  const hn::RebindToUnsigned<Tag> tag;
#if HWY_TARGET == HWY_SCALAR
  const PhiloxCounter scalars = dropout.words(head_index, n, j);
  for (int w = 0; w < 4; ++w) words[w] = hn::Set(tag, scalars[static_cast<size_t>(w)]);
#else
  words[0] = hn::Iota(tag, static_cast<uint32_t>(n));
  words[1] = hn::Set(tag, static_cast<uint32_t>(j / 4));
  words[2] = hn::Set(tag, static_cast<uint32_t>(head_index));
  words[3] = hn::Set(tag, static_cast<uint32_t>(static_cast<uint64_t>(head_index) >> 32));
  PhiloxRounds(dropout.key, words);
#endif
}

/// What the elements [begin, begin + count) of a tensor are multiplied by: 0 or 1 / (1 - p).
/// `buffer` has room for ElementFactorsRoom(count) floats; the result lies in it.
inline const float* ElementFactors(const ElementDropout& dropout,
                                   int64_t begin,
                                   int64_t count,
                                   float* HWY_RESTRICT buffer) {
  constexpr int64_t kBlock = ElementDropout::kBlock;
  begin += dropout.offset;
  const int64_t first = begin / kBlock, last = (begin + count + kBlock - 1) / kBlock;
  const auto keep_scale = static_cast<float>(dropout.keep_scale);
  float* to = buffer;
#if HWY_TARGET == HWY_SCALAR
  for (int64_t i = first * kBlock; i < last * kBlock; ++i) {
    *to++ = dropout.keeps(i - dropout.offset) ? keep_scale : 0.0f;
  }
#else
  const Tag tag;
  const hn::RebindToUnsigned<Tag> uint_tag;
  // Unsigned comparison through the signed one: flip the top bit of both sides.
  const hn::RebindToSigned<Tag> int_tag;
  const UintVec top = hn::Set(uint_tag, 0x80000000u);
  const auto threshold = hn::BitCast(int_tag, hn::Xor(hn::Set(uint_tag, dropout.threshold), top));
  constexpr int64_t kGroup = ElementDropout::kLanesOfBlock;
  static_assert(kGroup % kLanes == 0);
  for (int64_t block = first; block < last; ++block, to += kBlock) {
    for (int64_t lane = 0; lane < kGroup; lane += kLanes) {
      UintVec words[4] = {
          hn::Iota(uint_tag, static_cast<uint32_t>(lane)),
          hn::Set(uint_tag, static_cast<uint32_t>(block)),
          hn::Set(uint_tag, static_cast<uint32_t>(static_cast<uint64_t>(block) >> 32)),
          hn::Zero(uint_tag)};
      PhiloxRounds(dropout.key, words);
      for (int64_t w = 0; w < 4; ++w) {
        const auto dropped = hn::Lt(hn::BitCast(int_tag, hn::Xor(words[w], top)), threshold);
        hn::StoreU(hn::IfThenZeroElse(hn::RebindMask(tag, dropped), hn::Set(tag, keep_scale)), tag,
                   to + w * kGroup + lane);
      }
    }
  }
#endif
  return buffer + (begin - first * kBlock);
}

inline constexpr int64_t ElementFactorsRoom(int64_t count) {
  return count + 2 * ElementDropout::kBlock;
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace elliptical::kernels
HWY_AFTER_NAMESPACE();

#endif
