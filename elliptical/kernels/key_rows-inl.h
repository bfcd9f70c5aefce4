// SPDX-License-Identifier: MIT
//
// A block of keys or values as the products of tile-inl.h read it.
// Included once per SIMD target (Highway's -inl.h convention).

#if defined(ELLIPTICAL_KERNELS_KEY_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ELLIPTICAL_KERNELS_KEY_ROWS_INL_H_
#undef ELLIPTICAL_KERNELS_KEY_ROWS_INL_H_
#else
#define ELLIPTICAL_KERNELS_KEY_ROWS_INL_H_
#endif

#include <cmath>

#include "elliptical/kernels/attention.h"
#include "elliptical/kernels/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace elliptical::kernels {
namespace HWY_NAMESPACE {

/// A block of rows of K or V: in place where channels are neighbours in memory, else a
/// copy. When a row holds a NaN or Inf and may be hidden from some query, 0 * NaN must not reach
/// that query: such blocks are copied with those entries set to 0, and `Restore` adds them for the
/// queries that do see them.
class KeyRows {
 public:
  /// Rows [begin, begin + rows) of one head; `copy` holds rows * width floats.
  KeyRows(const View<const float>& view,
          int64_t b,
          int64_t hk,
          int64_t begin,
          int64_t rows,
          int64_t width,
          bool may_be_hidden,
          float* copy)
      : source_(view.row(b, hk, begin)),
        source_row_(view.stride_n),
        source_d_(view.stride_d),
        rows_(rows),
        width_(width) {
    data_ = {source_, source_row_, 1};
    finite_ = !may_be_hidden || AllFinite();
    if (source_d_ == 1 && finite_) return;
    for (int64_t j = 0; j < rows; ++j) {
      for (int64_t i = 0; i < width; ++i) {
        const float value = Source(j, i);
        copy[j * width + i] = finite_ || std::isfinite(value) ? value : 0.0f;
      }
    }
    data_ = {copy, width, 1};
  }

  Scalars by_row() const { return data_; }                                  ///< element (j, i)
  Scalars by_channel() const { return {data_.data, 1, data_.stride_row}; }  ///< element (i, j)

  /// out[i, lane] += w[j, lane] * source[j, i] for the entries that were set to 0, where w != 0.
  void Restore(const float* w,
               int64_t ldw,
               const int64_t* depth,
               int columns,
               float* out,
               int64_t ldo) const {
    if (finite_) return;
    for (int64_t j = 0; j < rows_; ++j) {
      for (int64_t i = 0; i < width_; ++i) {
        const float value = Source(j, i);
        if (std::isfinite(value)) continue;
        for (int64_t lane = 0; lane < columns * kLanes; ++lane) {
          const float weight = j < depth[lane / kLanes] ? w[j * ldw + lane] : 0.0f;
          if (weight != 0.0f) out[i * ldo + lane] += weight * value;
        }
      }
    }
  }

 private:
  float Source(int64_t j, int64_t i) const { return source_[j * source_row_ + i * source_d_]; }

  bool AllFinite() const {
    // x * 0 is 0 for a finite x and NaN otherwise.
    const Tag tag;
    Vec poison = hn::Zero(tag);
    float poison_rest = 0.0f;
    for (int64_t j = 0; j < rows_; ++j) {
      const float* row = source_ + j * source_row_;
      int64_t i = 0;
      if (source_d_ == 1) {
        for (; i + kLanes <= width_; i += kLanes) {
          poison = hn::MulAdd(hn::LoadU(tag, row + i), hn::Zero(tag), poison);
        }
      }
      for (; i < width_; ++i) poison_rest += row[i * source_d_] * 0.0f;
    }
    return hn::GetLane(hn::SumOfLanes(tag, poison)) + poison_rest == 0.0f;
  }

  const float* source_;
  int64_t source_row_, source_d_, rows_, width_;
  Scalars data_{};
  bool finite_ = true;
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace elliptical::kernels
HWY_AFTER_NAMESPACE();

#endif
