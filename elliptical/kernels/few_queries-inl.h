// SPDX-License-Identifier: MIT
//
// Products of attention for a panel with so few queries that most lanes would be idle (the 65th
// token of 64 patches and a class token; the next token of a text): channels in the lanes instead.
// Keys and values are read in place, in whole vectors.
// Included once per SIMD target (Highway's -inl.h convention).

#if defined(ELLIPTICAL_KERNELS_FEW_QUERIES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ELLIPTICAL_KERNELS_FEW_QUERIES_INL_H_
#undef ELLIPTICAL_KERNELS_FEW_QUERIES_INL_H_
#else
#define ELLIPTICAL_KERNELS_FEW_QUERIES_INL_H_
#endif

#include <algorithm>

#include "elliptical/kernels/attention.h"
#include "elliptical/kernels/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace elliptical::kernels {
namespace HWY_NAMESPACE {

/// From more queries on, lanes are the better place for them.
inline constexpr int64_t kFewQueries = std::min<int64_t>(kLanes / 4, kMaxColumns);

inline bool few_queries_apply(const AttentionSizes& sizes) {
  return sizes.D % kLanes == 0 && sizes.Dv % kLanes == 0;
}

/// factor * dot(a, b) in every lane, always summed up in the same order.
HWY_INLINE Vec RowDot(const float* a, const float* b, int64_t size, float factor) {
  const Tag tag;
  Vec sum = hn::Zero(tag);
  for (int64_t i = 0; i < size; i += kLanes) {
    sum = hn::MulAdd(hn::LoadU(tag, a + i), hn::LoadU(tag, b + i), sum);
  }
  return hn::Mul(hn::SumOfLanes(tag, sum), hn::Set(tag, factor));
}

/// s[j, l] = factor * dot(k[j], x[l]) for l < queries; the other lanes become 0.
inline void FewKeyProduct(Scalars k,
                          int64_t rows,
                          const float* HWY_RESTRICT x,
                          int64_t ldx,
                          int64_t queries,
                          int64_t size,
                          float factor,
                          float* HWY_RESTRICT s,
                          int64_t lds) {
  const Tag tag;
  const Vec lanes = hn::Iota(tag, 0);
  for (int64_t j = 0; j < rows; ++j) {
    Vec row = hn::Zero(tag);
    for (int64_t l = 0; l < queries; ++l) {
      const auto is_mine = hn::Eq(lanes, hn::Set(tag, static_cast<float>(l)));
      row = hn::IfThenElse(is_mine, RowDot(k.data + j * k.stride_row, x + l * ldx, size, factor),
                           row);
    }
    hn::StoreU(row, tag, s + j * lds);
  }
}

/// out[l, :] = sum_j w[j, l] v[j, :], added to what is there or to factor[l] times it, for l <
/// queries, over `rows` rows of `size` channels.
template <Into kInto>
void FewValueProduct(const float* HWY_RESTRICT w,
                     int64_t ldw,
                     Scalars v,
                     int64_t rows,
                     int64_t queries,
                     int64_t size,
                     const float* factor,
                     float* HWY_RESTRICT out,
                     int64_t ldo) {
  const Tag tag;
  for (int64_t l = 0; kInto == Into::kShrunk && l < queries; ++l) {
    for (float* cell = out + l * ldo; cell < out + l * ldo + size; cell += kLanes) {
      hn::StoreU(hn::Mul(hn::LoadU(tag, cell), hn::Set(tag, factor[l])), tag, cell);
    }
  }
  constexpr Into kTileInto = kInto == Into::kEmpty ? Into::kEmpty : Into::kSum;
  constexpr int kRows = static_cast<int>(std::max<int64_t>(kFewQueries, 1));
  ForChannelGroups(size, [&]<int C>(int64_t channel, int64_t) HWY_ATTR {
    int64_t depth[C];
    std::fill_n(depth, C, rows);
    Product<kRows, C, kTileInto>(queries, Scalars{w, 1, ldw}, v.data + channel, v.stride_row, depth,
                                 nullptr, out + channel, ldo);
  });
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace elliptical::kernels
HWY_AFTER_NAMESPACE();

#endif
