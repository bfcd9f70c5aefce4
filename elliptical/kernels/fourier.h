// SPDX-License-Identifier: MIT
//
// Attention with a product of sinc functions as its kernel (FourierFormer), forward and backward.
// For head t of T = B * H:
//
//   s[n,j] = 4 sum_d log max(|sinc(a[n,d] - b[j,d])|, 1e-20),   sinc(x) = sin(x) / x
//   o[n]   = sum_j exp(s[n,j]) v[j] / (sum_j exp(s[n,j]) + epsilon)
//
// Everything is contiguous float32. Memory is O(N): a thread holds one row of s at a time and one
// head of keys. Sines of differences come from those of a and b, so that the inner loop has none;
// below |x| = 1, where that loses digits, polynomials take over. Same bits for any number of
// threads: a head is one task. The slow, obvious version is fourier_reference.h.
#pragma once

#include <cstdint>

#include "elliptical/kernels/dropout.h"
#include "elliptical/kernels/parallel.h"

namespace elliptical::kernels {

template <class T>
struct FourierInputs {
  int64_t B = 0, H = 0, N = 0, M = 0, D = 0, Dv = 0;
  const T* a = nullptr;  ///< (B, H, N, D)
  const T* b = nullptr;  ///< (B, H, M, D)
  const T* v = nullptr;  ///< (B, H, M, Dv)
  /// (B) keys from that index on are padding; so are queries when N == M. Null: none.
  const int64_t* key_lengths = nullptr;
  bool is_causal = false;  ///< query n sees keys j <= n + (M - N)
  double epsilon = 0;
  Dropout dropout;  ///< of probabilities
};

/// Rows without any visible key: o = 0.
template <class T>
struct FourierOutputs {
  T* o = nullptr;  ///< (B, H, N, Dv)
  /// (B, H, N), of s log2(e); what backward needs beside row_sum. Both may be null.
  T* row_max = nullptr;
  T* row_sum = nullptr;  ///< (B, H, N)
};

template <class T>
struct FourierGradients {
  const T* o = nullptr;  ///< as written by forward, so the next two
  const T* row_max = nullptr;
  const T* row_sum = nullptr;
  const T* d_o = nullptr;
  T* d_a = nullptr;  ///< written, not added to; so the next two
  T* d_b = nullptr;
  T* d_v = nullptr;
};

void fourier_forward(const FourierInputs<float>& in,
                     const FourierOutputs<float>& out,
                     const ParallelFor& parallel_for);
void fourier_backward(const FourierInputs<float>& in,
                      const FourierGradients<float>& grad,
                      const ParallelFor& parallel_for);

}  // namespace elliptical::kernels
