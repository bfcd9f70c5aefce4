// SPDX-License-Identifier: MIT
//
// A block of rows times a packed matrix, in one thread: what products and layers around products
// are made of. Panels are two vectors wide, so that a panel of a few hundred rows stays in the
// first-level cache while the tiles of a block pass over it.
// Included once per SIMD target (Highway's -inl.h convention).

#if defined(ELLIPTICAL_KERNELS_PRODUCT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ELLIPTICAL_KERNELS_PRODUCT_INL_H_
#undef ELLIPTICAL_KERNELS_PRODUCT_INL_H_
#else
#define ELLIPTICAL_KERNELS_PRODUCT_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "elliptical/kernels/arena.h"
#include "elliptical/kernels/parallel.h"
#include "elliptical/kernels/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace elliptical::kernels {
namespace HWY_NAMESPACE {

/// Columns of a panel.
inline constexpr int64_t kPanel = 2 * kLanes;
/// Rows that are multiplied at once: a multiple of every tile's height, and few enough that the
/// rows of all operands stay in the second-level cache.
inline constexpr int64_t kBlockRows = 48;

/// Shares rows out and calls body(begin, rows, buffer) for blocks of each share, with a buffer of
/// rows x width floats. Shares are whole tiles, not whole blocks: equal also where there are few.
/// Not a shared queue: neighbouring rows stay with the thread that had them in the layer before. No
/// bit depends on where a share or a block begins.
template <class Body>
void ForRowBlocks(int64_t rows, int64_t width, const ParallelFor& parallel_for, const Body& body) {
  constexpr int64_t kTile = kBlockRows / 4;
  parallel_for(ceil_div(rows, kTile), [&](int64_t first, int64_t last) {
    const int64_t end = std::min(rows, last * kTile);
    float* buffer;
    const Arena arena({{&buffer, kBlockRows * width}});
    for (int64_t r = first * kTile; r < end; r += kBlockRows) {
      body(r, std::min(kBlockRows, end - r), buffer);
    }
  });
}

/// out[r, 0..columns) = (into) sum_k a[r, k] panel[k, :], for at most kPanel columns; all of a row
/// of the panel is read. `added` is read for Into::kAdded only.
template <Into kInto>
HWY_INLINE void MultiplyPanel(int64_t rows,
                              Scalars a,
                              int64_t K,
                              const float* panel,
                              int64_t ld_panel,
                              int64_t columns,
                              const float* added,
                              float* out,
                              int64_t ldo) {
  const int64_t depth[] = {K, K};
  if (columns > kLanes) {
    Product<kTileRows[1], 2, kInto>(rows, a, panel, ld_panel, depth, added, out, ldo,
                                    columns - kLanes);
  } else {
    Product<kTileRows[0], 1, kInto>(rows, a, panel, ld_panel, depth, added, out, ldo, columns);
  }
}

/// out[r, n] = bias[n] + sum_k a[r, k] b[k, n] with packed b; bias may be null.
inline void MultiplyBlock(int64_t rows,
                          int64_t K,
                          int64_t N,
                          const float* a,
                          const float* packed,
                          const float* bias,
                          float* out) {
  for (int64_t n = 0; n < N; n += kPanel) {
    const float* panel = packed + n * K;
    const int64_t columns = std::min(kPanel, N - n);
    if (bias) {
      MultiplyPanel<Into::kAdded>(rows, {a, K, 1}, K, panel, kPanel, columns, bias + n, out + n, N);
    } else {
      MultiplyPanel<Into::kEmpty>(rows, {a, K, 1}, K, panel, kPanel, columns, nullptr, out + n, N);
    }
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace elliptical::kernels
HWY_AFTER_NAMESPACE();

#endif
