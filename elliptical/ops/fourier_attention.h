// SPDX-License-Identifier: MIT
//
// Attention with a product of sinc functions as its kernel (FourierFormer, NeurIPS 2022), on ATen
// tensors, differentiable:
//
//   out[n] = sum_j P[n,j] v[j] / (sum_j P[n,j] + epsilon),  P[n,j] = prod_d sinc(a[n,d] - b[j,d])^4
//
// a (B, H, N, D) and b (B, H, M, D) are queries and keys times the bandwidth R, v (B, H, M, Dv). In
// logarithms throughout: the product leaves the range of a float for ordinary inputs. |sinc| below
// 1e-20 counts as 1e-20, with gradient 0.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

namespace elliptical::ops {

struct FourierOptions {
  bool is_causal = false;  ///< query n sees keys j <= n + (M - N)
  double epsilon = 0.0;
  std::optional<at::Tensor> key_lengths;  ///< (B) int64: keys from there on are padding
  double dropout_p = 0.0;                 ///< of probabilities
  int64_t dropout_seed = 0;
};

/// (B, H, N, Dv). Float on the CPU takes the kernel, O(N) in memory; everything else is composite.
at::Tensor fourier_attention(const at::Tensor& a,
                             const at::Tensor& b,
                             const at::Tensor& v,
                             const FourierOptions& options);

/// The same by plain ATen operations, O(N M D) in memory: the reference.
at::Tensor fourier_attention_composite(const at::Tensor& a,
                                       const at::Tensor& b,
                                       const at::Tensor& v,
                                       const FourierOptions& options);

/// The attention map (B, H, N, M) before dropout.
at::Tensor fourier_map(const at::Tensor& a, const at::Tensor& b, const FourierOptions& options);

}  // namespace elliptical::ops
