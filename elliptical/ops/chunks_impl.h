// SPDX-License-Identifier: MIT
//
// Chunks of rows in which feed-forward layers make and use their hidden layer.
#pragma once

#include <algorithm>
#include <cstdint>

namespace elliptical::ops {

/// Elements of a chunk of the hidden layer: 4 MiB.
inline constexpr int64_t kChunkElements = 1 << 20;

inline int64_t chunk_rows(int64_t F) {
  return std::max<int64_t>(64, kChunkElements / std::max<int64_t>(1, F));
}

/// Calls body(begin, rows) for every chunk.
template <class Body>
void for_chunks(int64_t rows, int64_t F, const Body& body) {
  const int64_t step = chunk_rows(F);
  for (int64_t begin = 0; begin < rows; begin += step) body(begin, std::min(step, rows - begin));
}

}  // namespace elliptical::ops
