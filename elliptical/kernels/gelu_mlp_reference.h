// SPDX-License-Identifier: MIT
//
// The layer of gelu_mlp.h as its formula says it, one element at a time: the version to read first
// and the one the fast kernel is tested against. Matrices are not packed here. Header only: tests
// evaluate it in double, and in numbers that carry error bounds.
#pragma once

#include <cmath>
#include <numbers>
#include <vector>

#include "elliptical/kernels/gelu_mlp.h"
#include "elliptical/kernels/residual_norm_reference.h"

namespace elliptical::kernels {

/// z Phi(z)
inline double gelu(double z) { return z * 0.5 * std::erfc(-z / std::numbers::sqrt2); }

/// gelu'(z) = Phi(z) + z phi(z)
inline double gelu_slope(double z) {
  const double bell = std::exp(-0.5 * z * z) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
  return 0.5 * std::erfc(-z / std::numbers::sqrt2) + z * bell;
}

template <class T>
struct GeluMlpWeights {
  int64_t C = 0, F = 0;
  const T* up = nullptr;  ///< (F, C)
  const T* up_bias = nullptr;
  const T* down = nullptr;  ///< (C, F)
  const T* down_bias = nullptr;
};

/// z (rows, F) and y (rows, C) from x (rows, C).
template <class T>
void gelu_mlp_reference_forward(
    int64_t rows, const GeluMlpWeights<T>& layer, const T* x, T* z, T* y) {
  const auto& [C, F, up, up_bias, down, down_bias] = layer;
  for (int64_t r = 0; r < rows; ++r) {
    std::vector<T> hidden(static_cast<size_t>(F));
    for (int64_t f = 0; f < F; ++f) {
      T sum = up_bias[f];
      for (int64_t c = 0; c < C; ++c) sum += x[r * C + c] * up[f * C + c];
      z[r * F + f] = sum;
      hidden[f] = gelu(sum);
    }
    for (int64_t c = 0; c < C; ++c) {
      T sum = down_bias[c];
      for (int64_t f = 0; f < F; ++f) sum += hidden[f] * down[c * F + f];
      y[r * C + c] = sum;
    }
  }
}

/// dz (rows, F) and dx (rows, C) from dy (rows, C) and the forward's z.
template <class T>
void gelu_mlp_reference_backward(
    int64_t rows, const GeluMlpWeights<T>& layer, const T* dy, const T* z, T* dz, T* dx) {
  const auto& [C, F, up, up_bias, down, down_bias] = layer;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t f = 0; f < F; ++f) {
      T sum(0);
      for (int64_t c = 0; c < C; ++c) sum += dy[r * C + c] * down[c * F + f];
      dz[r * F + f] = sum * gelu_slope(z[r * F + f]);
    }
    for (int64_t c = 0; c < C; ++c) {
      T sum(0);
      for (int64_t f = 0; f < F; ++f) sum += dz[r * F + f] * up[f * C + c];
      dx[r * C + c] = sum;
    }
  }
}

/// The layer between two norms, GeluMlpNorms: s = residual + x, y = s + layer(before(s)),
/// normed = after(y).
template <class T>
void normed_gelu_mlp_reference_forward(int64_t rows,
                                       const GeluMlpWeights<T>& layer,
                                       const NormParameters<T>& before,
                                       const NormParameters<T>& after,
                                       const T* x,
                                       const T* residual,
                                       T* y,
                                       T* normed) {
  const int64_t C = layer.C;
  std::vector<T> s(static_cast<size_t>(C)), read(s), scratch(s), z(static_cast<size_t>(layer.F));
  for (int64_t i = 0; i < rows * C; i += C) {
    for (int64_t c = 0; c < C; ++c) s[c] = residual[i + c] + x[i + c];
    norm_reference(s.data(), C, before, read.data(), scratch.data());
    gelu_mlp_reference_forward(1, layer, read.data(), z.data(), y + i);
    for (int64_t c = 0; c < C; ++c) y[i + c] += s[c];
    norm_reference(y + i, C, after, normed + i, scratch.data());
  }
}

}  // namespace elliptical::kernels
