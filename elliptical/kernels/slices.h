// SPDX-License-Identifier: MIT
//
// Ranges cut into parts.
#pragma once

#include <algorithm>
#include <cstdint>

namespace elliptical::kernels {

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
inline int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

/// Part `index` of [0, total) cut into `parts` pieces that differ by at most one.
struct Slice {
  int64_t begin, end;
  int64_t size() const { return end - begin; }
};
inline Slice balanced_slice(int64_t total, int64_t parts, int64_t index) {
  const int64_t small = total / parts, larger = total % parts;
  const int64_t begin = index * small + std::min(index, larger);
  return {begin, begin + small + (index < larger ? 1 : 0)};
}

}  // namespace elliptical::kernels
