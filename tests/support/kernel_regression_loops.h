// SPDX-License-Identifier: MIT
//
// Kernel density attention by loops over the definition, in double: distances, kernels and both
// sums are formed one by one. What the fast variants are compared with.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

namespace elliptical::support {

struct KernelLoops {
  double kernel_scale = 1.0;
  bool is_causal = false;
  std::optional<at::Tensor> key_lengths;  ///< (B)
  std::optional<at::Tensor> metric;       ///< (B, H, N, D)

  /// exp(-s d^2(q_n, k_j)) with k_j of length 1, (B, H, N, M); 0 where n does not see j.
  at::Tensor kernels(const at::Tensor& q, const at::Tensor& k) const;
};

/// exp(-s |x_j - x_l|^2), (B, H, M, M).
at::Tensor gram_by_loops(const at::Tensor& x, double kernel_scale);

/// sum_j above[n,j] kernel[n,j] v[j] / sum_j below[n,j] kernel[n,j], (B, H, N, D); all (B, H, N, M)
/// but v. Rows without any kernel are 0.
at::Tensor regression_by_loops(const at::Tensor& kernels,
                               const at::Tensor& v,
                               const at::Tensor& above,
                               const at::Tensor& below);

}  // namespace elliptical::support
