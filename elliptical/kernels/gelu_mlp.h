// SPDX-License-Identifier: MIT
//
// A feed-forward layer with the exact Gaussian error linear unit, forward and backward:
//
//   y = gelu(z) down^T + down_bias,  z = x up^T + up_bias
//   gelu(z) = z Phi(z),  gelu'(z) = Phi(z) + z phi(z),  Phi(z) = (1 + erf(z / sqrt(2))) / 2
//
// x, y (rows, C), up (F, C), down (C, F). A block of rows goes through the whole layer before the
// next one, so its hidden layer stays in the cache. Gelu and its slope need the same exponential:
// the backward makes gelu(z) once more instead of reading it. Where it is not asked for gradients
// of the weights, it needs neither: the forward keeps gelu'(z) for it instead of z. Errors of gelu
// are below 2e-7 times max(1, |z|). Everything is contiguous float32; same bits for any number of
// threads. `gelu_mlp_reference.h` is the slow, obvious version.
#pragma once

#include "elliptical/kernels/product.h"
#include "elliptical/kernels/residual_norm.h"

namespace elliptical::kernels {

/// The rest of a pre-norm block's second half: with s = residual + x the layer reads norm `before`
/// of s, and s is added to its result, y; norm `after` of that is written, too.
struct GeluMlpNorms {
  const float* residual = nullptr;
  NormParameters<float> before, after;
  float* normed = nullptr;
};

struct GeluMlp {
  int64_t rows = 0, C = 0, F = 0;
  const float* x = nullptr;
  const float* up = nullptr;  ///< up^T (C, F), packed
  const float* up_bias = nullptr;
  const float* down = nullptr;  ///< down^T (F, C), packed
  const float* down_bias = nullptr;
  /// (rows, F), what the backward needs: z, or gelu'(z) where only dx is wanted. Null: not kept.
  float* z = nullptr;
  float* slope = nullptr;
  float* y = nullptr;
  const GeluMlpNorms* norms = nullptr;  ///< null: the layer alone
};
void gelu_mlp_forward(const GeluMlp& layer, const ParallelFor& parallel_for);

struct GeluMlpGradients {
  int64_t rows = 0, C = 0, F = 0;
  const float* dy = nullptr;
  const float* z = nullptr;      ///< of the forward
  const float* slope = nullptr;  ///< the same, in place of z; dz and hidden are null then
  const float* down = nullptr;   ///< down (C, F), packed
  const float* up = nullptr;     ///< up (F, C), packed
  float* dx = nullptr;
  /// (rows, F), what the gradients of the weights are made of: dz and gelu(z). Null: not wanted.
  float* dz = nullptr;
  float* hidden = nullptr;
};
void gelu_mlp_backward(const GeluMlpGradients& layer, const ParallelFor& parallel_for);

}  // namespace elliptical::kernels
