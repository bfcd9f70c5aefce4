// SPDX-License-Identifier: MIT
//
// Which keys a query may see before any mask is looked at: the rule for causal order and padding,
// written once.
#pragma once

#include <algorithm>
#include <cstdint>

#include "elliptical/kernels/attention.h"

namespace elliptical::kernels {

/// Number of real keys of batch item b.
template <class T>
int64_t real_keys(const AttentionInputs<T>& in, int64_t b) {
  return in.key_lengths ? std::clamp<int64_t>(in.key_lengths[b], 0, in.sizes.M) : in.sizes.M;
}

/// Number of real queries of batch item b: padding hides queries only in self-attention (N == M).
template <class T>
int64_t real_queries(const AttentionInputs<T>& in, int64_t b) {
  return in.sizes.N == in.sizes.M ? real_keys(in, b) : in.sizes.N;
}

/// Query n of batch item b sees keys [0, visible_keys).
template <class T>
int64_t visible_keys(const AttentionInputs<T>& in, int64_t b, int64_t n) {
  if (n >= real_queries(in, b)) return 0;
  const int64_t keys = real_keys(in, b);
  return in.is_causal ? std::clamp<int64_t>(n + 1 + in.sizes.M - in.sizes.N, 0, keys) : keys;
}

}  // namespace elliptical::kernels
