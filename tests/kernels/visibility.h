// SPDX-License-Identifier: MIT
//
// Which query sees which key in a test problem, all rules together.
#pragma once

#include "elliptical/kernels/visible.h"
#include "tests/kernels/problem.h"

namespace elliptical::kernels::test {

template <class T>
class Visibility {
 public:
  explicit Visibility(const Problem<T>& problem) : problem_(problem), in_(problem.inputs()) {}

  bool sees(int64_t b, int64_t h, int64_t n, int64_t j) const {
    if (j >= visible_keys(in_, b, n)) return false;
    if (problem_.mask_keep && !problem_.mask_keep.at(b, h, n, j)) return false;
    return !problem_.mask_add || problem_.mask_add.at(b, h, n, j) > -kInfinity;
  }
  bool sees_any(int64_t b, int64_t h, int64_t n) const {
    for (int64_t j = 0; j < in_.sizes.M; ++j)
      if (sees(b, h, n, j)) return true;
    return false;
  }
  /// True when some query of the key head's group sees the key.
  bool is_seen(int64_t b, int64_t hk, int64_t j) const {
    const int64_t group = in_.sizes.H / in_.sizes.Hk;
    for (int64_t h = hk * group; h < (hk + 1) * group; ++h)
      for (int64_t n = 0; n < in_.sizes.N; ++n)
        if (sees(b, h, n, j)) return true;
    return false;
  }

 private:
  static constexpr T kInfinity = std::numeric_limits<T>::infinity();
  const Problem<T>& problem_;
  AttentionInputs<T> in_;
};

}  // namespace elliptical::kernels::test
