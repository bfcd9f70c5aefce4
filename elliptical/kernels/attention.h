// SPDX-License-Identifier: MIT
//
// Elliptical attention on raw pointers and strides, without torch. For batch item b, head h:
//
//   s[n,j] = scale * sum_i q[n,i] m[n,i] k[j,i] + mask[n,j]    (paper: q^T M k / sqrt(D), eq. 10)
//   o[n]   = sum_j softmax_j(s[n,j]) v[j]
//
// The metric m = diag(M) is optional; without it this is plain softmax attention. Memory is O(N):
// the N x M scores never exist. Results have the same bits for any number of threads.
// `attention_reference.h` is the slow, obvious version of the same functions.
#pragma once

#include <cstdint>

#include "elliptical/kernels/parallel.h"

namespace elliptical::kernels {

/// A (B, H, N, D) array in memory. Strides count elements, may be 0 (broadcast), negative or of any
/// order.
template <class T>
struct View {
  T* data = nullptr;
  int64_t stride_b = 0;
  int64_t stride_h = 0;
  int64_t stride_n = 0;
  int64_t stride_d = 0;

  explicit operator bool() const { return data != nullptr; }
  T* row(int64_t b, int64_t h, int64_t n) const {
    return data + b * stride_b + h * stride_h + n * stride_n;
  }
};

/// B batch, H query heads, Hk key heads (H is a multiple of Hk), N queries, M keys, D and Dv
/// widths.
struct AttentionSizes {
  int64_t B = 0, H = 0, Hk = 0, N = 0, M = 0, D = 0, Dv = 0;
};

/// Everything forward and backward have in common. Sizes are trusted here: callers check them
/// first.
template <class T>
struct AttentionInputs {
  AttentionSizes sizes;
  View<const T> q;       ///< (B, H, N, D)
  View<const T> k;       ///< (B, Hk, M, D)
  View<const T> v;       ///< (B, Hk, M, Dv)
  View<const T> metric;  ///< (B, H, N, D), stride 0 where it is broadcast; empty: no metric

  View<const T> mask_add;      ///< (B, H, N, M) added to s; empty: none
  View<const bool> mask_keep;  ///< (B, H, N, M) true = attend; empty: none
  /// (B) keys from that index on are padding; so are queries when N == M. Null: none.
  const int64_t* key_lengths = nullptr;
  bool is_causal = false;  ///< query n sees keys j <= n + (M - N)
  double scale = 1.0;

  /// Probabilities are dropped with this chance, the others divided by 1 - p.
  double dropout_p = 0.0;
  uint64_t dropout_seed = 0;
};

/// What forward writes. Rows without any visible key: o = 0, lse = -inf.
template <class T>
struct AttentionOutputs {
  View<T> o;         ///< (B, H, N, Dv), stride_d must be 1
  T* lse = nullptr;  ///< (B, H, N) contiguous, log sum_j exp(s[n,j]); may be null
  /// (B, H, N) contiguous, what backward needs beside row_sum; both may be null.
  T* row_max = nullptr;
  T* row_sum = nullptr;  ///< (B, H, N) contiguous
};

/// What backward reads beside the inputs, and what it writes.
template <class T>
struct AttentionGradients {
  View<const T> o;             ///< as written by forward
  const T* row_max = nullptr;  ///< as written by forward
  const T* row_sum = nullptr;  ///< as written by forward
  View<const T> d_o;           ///< (B, H, N, Dv) gradient of o
  const T* d_lse = nullptr;    ///< (B, H, N) contiguous, gradient of lse; null: zero

  View<T> dq;  ///< (B, H, N, D), stride_d must be 1, so for the others
  View<T> dk;  ///< (B, Hk, M, D)
  View<T> dv;  ///< (B, Hk, M, Dv)
  /// Gradient of the metric before the sum over broadcast batch items and heads: (B, H, N, D) when
  /// `metric.stride_n != 0`, else (B, H, 1, D) with stride_n = 0. Empty: not wanted.
  View<T> d_metric;
};

/// Writes `out`. Uses the widest instruction set the CPU has (see `simd.h`).
void attention_forward(const AttentionInputs<float>& in,
                       const AttentionOutputs<float>& out,
                       const ParallelFor& parallel_for);

/// Writes the gradients (overwrites, does not accumulate).
void attention_backward(const AttentionInputs<float>& in,
                        const AttentionGradients<float>& grad,
                        const ParallelFor& parallel_for);

}  // namespace elliptical::kernels
