// SPDX-License-Identifier: MIT
//
// Elementwise work on rows of floats, and transposition: how blocks are gathered and written back.
// Included once per SIMD target (Highway's -inl.h convention).

#if defined(ELLIPTICAL_KERNELS_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ELLIPTICAL_KERNELS_ROWS_INL_H_
#undef ELLIPTICAL_KERNELS_ROWS_INL_H_
#else
#define ELLIPTICAL_KERNELS_ROWS_INL_H_
#endif

#include <cstdint>

#include "elliptical/kernels/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace elliptical::kernels {
namespace HWY_NAMESPACE {

/// to[c, r] = from[r, c] * weights[r, c] * factor; without weights (null) from[r, c] * factor.
/// `ld_weights` = 0 is one row of weights for all. Works on 4 x 4 blocks: everything is accessed up
/// to the next multiple of 4.
inline void Transpose(const float* HWY_RESTRICT from,
                      int64_t ld_from,
                      const float* HWY_RESTRICT weights,
                      int64_t ld_weights,
                      int64_t rows,
                      int64_t columns,
                      float factor,
                      float* HWY_RESTRICT to,
                      int64_t ld_to) {
#if HWY_TARGET == HWY_SCALAR
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      const float weight = weights ? weights[r * ld_weights + c] : 1.0f;
      to[c * ld_to + r] = from[r * ld_from + c] * weight * factor;
    }
  }
#else
  const hn::FixedTag<float, 4> tag;
  using V4 = hn::Vec<decltype(tag)>;
  const hn::RepartitionToWide<decltype(tag)> wide;
  const V4 scale = hn::Set(tag, factor);
  for (int64_t r = 0; r < rows; r += 4) {
    for (int64_t c = 0; c < columns; c += 4) {
      V4 row[4];
      ELLIPTICAL_UNROLL
      for (int64_t l = 0; l < 4; ++l) {
        row[l] = hn::LoadU(tag, from + (r + l) * ld_from + c);
        if (weights) row[l] = hn::Mul(row[l], hn::LoadU(tag, weights + (r + l) * ld_weights + c));
        row[l] = hn::Mul(row[l], scale);
      }
      const auto low01 = hn::BitCast(wide, hn::InterleaveLower(tag, row[0], row[1]));
      const auto low23 = hn::BitCast(wide, hn::InterleaveLower(tag, row[2], row[3]));
      const auto high01 = hn::BitCast(wide, hn::InterleaveUpper(tag, row[0], row[1]));
      const auto high23 = hn::BitCast(wide, hn::InterleaveUpper(tag, row[2], row[3]));
      float* out = to + c * ld_to + r;
      hn::StoreU(hn::BitCast(tag, hn::InterleaveLower(wide, low01, low23)), tag, out);
      hn::StoreU(hn::BitCast(tag, hn::InterleaveUpper(wide, low01, low23)), tag, out + ld_to);
      hn::StoreU(hn::BitCast(tag, hn::InterleaveLower(wide, high01, high23)), tag, out + 2 * ld_to);
      hn::StoreU(hn::BitCast(tag, hn::InterleaveUpper(wide, high01, high23)), tag, out + 3 * ld_to);
    }
  }
#endif
}

inline void Transpose(const float* HWY_RESTRICT from,
                      int64_t ld_from,
                      int64_t rows,
                      int64_t columns,
                      float factor,
                      float* HWY_RESTRICT to,
                      int64_t ld_to) {
  Transpose(from, ld_from, nullptr, 0, rows, columns, factor, to, ld_to);
}

/// to[i] = a[i * stride] * factor
inline void ScaleRow(const float* HWY_RESTRICT a,
                     int64_t stride,
                     int64_t size,
                     float factor,
                     float* HWY_RESTRICT to) {
  const Tag tag;
  int64_t i = 0;
  if (stride == 1) {
    for (; i + kLanes <= size; i += kLanes) {
      hn::StoreU(hn::Mul(hn::LoadU(tag, a + i), hn::Set(tag, factor)), tag, to + i);
    }
  }
  for (; i < size; ++i) to[i] = a[i * stride] * factor;
}

/// to[i] = a[i * stride_a] * b[i * stride_b]
inline void MultiplyRow(const float* HWY_RESTRICT a,
                        int64_t stride_a,
                        const float* HWY_RESTRICT b,
                        int64_t stride_b,
                        int64_t size,
                        float* HWY_RESTRICT to) {
  const Tag tag;
  int64_t i = 0;
  if (stride_a == 1 && stride_b == 1) {
    for (; i + kLanes <= size; i += kLanes) {
      hn::StoreU(hn::Mul(hn::LoadU(tag, a + i), hn::LoadU(tag, b + i)), tag, to + i);
    }
  }
  for (; i < size; ++i) to[i] = a[i * stride_a] * b[i * stride_b];
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace elliptical::kernels
HWY_AFTER_NAMESPACE();

#endif
