// SPDX-License-Identifier: MIT
//
// How attention is cut into tasks and blocks. Depends on the problem's sizes only, never on the
// number of threads: that is what makes results reproducible.
#pragma once

#include <algorithm>
#include <cstdint>

#include "elliptical/kernels/slices.h"

namespace elliptical::kernels {

/// Queries of one block, whose gathered copies and accumulators stay in the second-level cache.
inline constexpr int64_t kQueryBlock = 128;

/// Query block `index` of `blocks`, in whole vectors of `lanes` queries.
inline Slice query_slice(int64_t N, int64_t lanes, int64_t blocks, int64_t index) {
  const Slice vectors = balanced_slice(ceil_div(N, lanes), blocks, index);
  return {vectors.begin * lanes, std::min(vectors.end * lanes, N)};
}

/// 0, last, 1, last - 1, ...: under a causal mask late blocks cost more, so that any contiguous run
/// of this order costs about the same per block.
inline int64_t zigzag(int64_t index, int64_t count) {
  return index % 2 == 0 ? index / 2 : count - 1 - index / 2;
}

}  // namespace elliptical::kernels
