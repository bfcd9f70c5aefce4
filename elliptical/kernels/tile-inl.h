// SPDX-License-Identifier: MIT
//
// The one inner loop of attention: a register tile of R rows x C vectors,
//
//   out[r, :] (+)= sum_k a[r, k] * b[k, :]
//
// where `a` is read in place, one scalar at a time and broadcast, and `b` holds vectors. All
// products of attention have this form: with queries in the lanes S^T = K Q^T, O^T += V^T P^T,
// dP^T = V dO^T, dQ^T += K^T dS^T; with channels in the lanes dV += P^T dO and dK += dS^T Q.
// Included once per SIMD target (Highway's -inl.h convention).

#if defined(ELLIPTICAL_KERNELS_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ELLIPTICAL_KERNELS_TILE_INL_H_
#undef ELLIPTICAL_KERNELS_TILE_INL_H_
#else
#define ELLIPTICAL_KERNELS_TILE_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "elliptical/kernels/slices.h"
#include "hwy/highway.h"

// Register tiles only stay in registers when these short loops are unrolled completely.
#undef ELLIPTICAL_UNROLL
#undef ELLIPTICAL_UNROLL_BY_4
#if HWY_COMPILER_CLANG
#define ELLIPTICAL_UNROLL _Pragma("clang loop unroll(full)")
#define ELLIPTICAL_UNROLL_BY_4 _Pragma("clang loop unroll_count(4)")
#else
#define ELLIPTICAL_UNROLL _Pragma("GCC unroll 16")
#define ELLIPTICAL_UNROLL_BY_4 _Pragma("GCC unroll 4")
#endif

HWY_BEFORE_NAMESPACE();
namespace elliptical::kernels {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::ScalableTag<float>;
using Vec = hn::Vec<Tag>;
inline constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(Tag()));

// Tiles by the number of registers: R * C accumulators, C vectors of b and one broadcast must fit.
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64 || HWY_ARCH_PPC
inline constexpr int kMaxColumns = 4;  // 32 registers
inline constexpr int kTileRows[] = {16, 12, 8, 6};
#else
inline constexpr int kMaxColumns = 3;  // 16 registers
inline constexpr int kTileRows[] = {8, 6, 4};
#endif

/// Calls body.template operator()<C>() for a number of columns up to kMaxColumns.
template <class Body>
HWY_INLINE void ForColumns(int columns, Body&& body) {
  switch (columns) {
    case 1:
      return body.template operator()<1>();
    case 2:
      return body.template operator()<2>();
    case 3:
      return body.template operator()<3>();
    default:
      if constexpr (kMaxColumns == 4) return body.template operator()<4>();
  }
}

/// A matrix that is read one scalar at a time: element (r, k) is
/// data[r * stride_row + k * stride_depth].
struct Scalars {
  const float* data;
  int64_t stride_row;
  int64_t stride_depth;

  Scalars from_row(int64_t r) const { return {data + r * stride_row, stride_row, stride_depth}; }
};

/// The first `lanes` lanes at `from`, the others 0; memory behind them is not touched.
HWY_INLINE Vec LoadFirst(const float* from, int64_t lanes) {
  const Tag tag;
#if HWY_MEM_OPS_MIGHT_FAULT
  HWY_ALIGN float buffer[kLanes] = {};
  for (int64_t l = 0; l < lanes; ++l) buffer[l] = from[l];
  return hn::Load(tag, buffer);
#else
  return hn::MaskedLoad(hn::FirstN(tag, static_cast<size_t>(lanes)), tag, from);
#endif
}

/// Writes the first `lanes` lanes only.
HWY_INLINE void StoreFirst(Vec value, float* to, int64_t lanes) {
  const Tag tag;
#if HWY_MEM_OPS_MIGHT_FAULT
  HWY_ALIGN float buffer[kLanes];
  hn::Store(value, tag, buffer);
  for (int64_t l = 0; l < lanes; ++l) to[l] = buffer[l];
#else
  hn::BlendedStore(value, hn::FirstN(tag, static_cast<size_t>(lanes)), tag, to);
#endif
}

/// What becomes of the contents of `out`. A product is always summed up by itself first: adding
/// term by term to a long sum that is already there would lose its digits.
enum class Into {
  kEmpty,   ///< out = a b
  kSum,     ///< out = out + a b
  kShrunk,  ///< out = out * factor + a b, one factor per lane
  kAdded,   ///< out = factor + a b
};

/// Adds k in [begin, end) to columns [kFrom, C) of the tile.
template <int R, int C, int kFrom>
HWY_INLINE void TileAccumulate(Vec (&acc)[R][C],
                               Scalars a,
                               const float* HWY_RESTRICT b,
                               int64_t ldb,
                               int64_t begin,
                               int64_t end) {
  const Tag tag;
  const float* HWY_RESTRICT bk = b + begin * ldb;
  const float* HWY_RESTRICT ak = a.data + begin * a.stride_depth;
  ELLIPTICAL_UNROLL_BY_4
  for (int64_t k = begin; k < end; ++k) {
    Vec column[C];
    ELLIPTICAL_UNROLL
    for (int c = kFrom; c < C; ++c) column[c] = hn::LoadU(tag, bk + c * kLanes);
    ELLIPTICAL_UNROLL
    for (int r = 0; r < R; ++r) {
      const Vec scalar = hn::Set(tag, ak[r * a.stride_row]);
      ELLIPTICAL_UNROLL
      for (int c = kFrom; c < C; ++c) acc[r][c] = hn::MulAdd(scalar, column[c], acc[r][c]);
    }
    bk += ldb;
    ak += a.stride_depth;
  }
}

/// Columns may end at different depths, depth[0] <= ... <= depth[C-1]: the staircase below a causal
/// diagonal.
template <int R, int C, int kFrom>
HWY_INLINE void TileStairs(Vec (&acc)[R][C],
                           Scalars a,
                           const float* HWY_RESTRICT b,
                           int64_t ldb,
                           const int64_t* depth,
                           int64_t done) {
  TileAccumulate<R, C, kFrom>(acc, a, b, ldb, done, depth[kFrom]);
  if constexpr (kFrom + 1 < C) {
    if (depth[kFrom] < depth[C - 1])
      TileStairs<R, C, kFrom + 1>(acc, a, b, ldb, depth, depth[kFrom]);
  }
}

/// One tile. `factor` is read for Into::kShrunk and Into::kAdded only. The last vector of a row has
/// `last_lanes` valid lanes (all of them for Into::kShrunk).
template <int R, int C, Into kInto>
HWY_INLINE void Tile(Scalars a,
                     const float* HWY_RESTRICT b,
                     int64_t ldb,
                     const int64_t* depth,
                     const float* HWY_RESTRICT factor,
                     float* HWY_RESTRICT out,
                     int64_t ldo,
                     int64_t last_lanes) {
  const Tag tag;
  Vec acc[R][C];
  ELLIPTICAL_UNROLL
  for (int r = 0; r < R; ++r) {
    ELLIPTICAL_UNROLL
    for (int c = 0; c < C; ++c) acc[r][c] = hn::Zero(tag);
  }
  TileStairs<R, C, 0>(acc, a, b, ldb, depth, 0);
  ELLIPTICAL_UNROLL
  for (int r = 0; r < R; ++r) {
    ELLIPTICAL_UNROLL
    for (int c = 0; c < C; ++c) {
      float* to = out + r * ldo + c * kLanes;
      const bool is_part = c == C - 1 && last_lanes < kLanes;
      if constexpr (kInto == Into::kEmpty) {
        is_part ? StoreFirst(acc[r][c], to, last_lanes) : hn::StoreU(acc[r][c], tag, to);
      } else if constexpr (kInto == Into::kShrunk) {
        const Vec shrink = hn::LoadU(tag, factor + c * kLanes);
        hn::StoreU(hn::MulAdd(hn::LoadU(tag, to), shrink, acc[r][c]), tag, to);
      } else {
        const float* from = kInto == Into::kAdded ? factor + c * kLanes : to;
        if (is_part) {
          StoreFirst(hn::Add(LoadFirst(from, last_lanes), acc[r][c]), to, last_lanes);
        } else {
          hn::StoreU(hn::Add(hn::LoadU(tag, from), acc[r][c]), tag, to);
        }
      }
    }
  }
}

/// `rows` rows in tiles of R rows, what is left over in tiles of half the height, and so on.
template <int R, int C, Into kInto>
HWY_INLINE void Product(int64_t rows,
                        Scalars a,
                        const float* HWY_RESTRICT b,
                        int64_t ldb,
                        const int64_t* depth,
                        const float* HWY_RESTRICT factor,
                        float* HWY_RESTRICT out,
                        int64_t ldo,
                        int64_t last_lanes = kLanes) {
  int64_t r = 0;
  for (; r + R <= rows; r += R) {
    Tile<R, C, kInto>(a.from_row(r), b, ldb, depth, factor, out + r * ldo, ldo, last_lanes);
  }
  if constexpr (R > 1) {
    constexpr int kHalf = R > 8 ? 8 : R > 4 ? 4 : R > 2 ? 2 : 1;
    if (r < rows) {
      Product<kHalf, C, kInto>(rows - r, a.from_row(r), b, ldb, depth, factor, out + r * ldo, ldo,
                               last_lanes);
    }
  }
}

/// Cuts `width` channels into groups of up to kMaxColumns vectors, as equal as possible, and calls
/// body.template operator()<C>(first channel, valid lanes of the last vector) for each.
template <class Body>
HWY_INLINE void ForChannelGroups(int64_t width, Body&& body) {
  const int64_t vectors = ceil_div(width, kLanes), groups = ceil_div(vectors, kMaxColumns);
  for (int64_t group = 0; group < groups; ++group) {
    const Slice slice = balanced_slice(vectors, groups, group);
    const int64_t last_lanes = std::min(kLanes, width - (slice.end - 1) * kLanes);
    ForColumns(static_cast<int>(slice.size()), [&]<int C>() HWY_ATTR {
      body.template operator()<C>(slice.begin * kLanes, last_lanes);
    });
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace elliptical::kernels
HWY_AFTER_NAMESPACE();

#endif
