// SPDX-License-Identifier: MIT
//
// The layer of residual_norm.h as its formula says it, one element at a time: the version to read
// first and the one the fast kernel is tested against. Same contract, without threads. Header only:
// tests evaluate it in double, and in numbers that carry error bounds.
#pragma once

#include <cmath>
#include <vector>

#include "elliptical/kernels/dropout_reference.h"
#include "elliptical/kernels/residual_norm.h"

namespace elliptical::kernels {

/// Layer norm of one row; `normalised` is written. Returns rstd.
template <class T>
T norm_reference(const T* s, int64_t C, const NormParameters<T>& norm, T* y, T* normalised) {
  using std::sqrt;
  const T count(static_cast<double>(C));
  T sum(0), squares(0);
  for (int64_t c = 0; c < C; ++c) sum += s[c];
  const T mean = sum / count;
  for (int64_t c = 0; c < C; ++c) squares += (s[c] - mean) * (s[c] - mean);
  const T rstd = T(1) / sqrt(squares / count + T(norm.eps));
  for (int64_t c = 0; c < C; ++c) {
    normalised[c] = (s[c] - mean) * rstd;
    y[c] = normalised[c] * norm.weight[c] + norm.bias[c];
  }
  return rstd;
}

template <class T>
void residual_dropout_norm_reference_forward(
    Rows size, const NormInputs<T>& in, T* y, T* normalised, T* rstd) {
  const int64_t C = size.C;
  std::vector<T> s(static_cast<size_t>(C));
  for (int64_t r = 0; r < size.rows; ++r) {
    for (int64_t c = 0; c < C; ++c) {
      const int64_t i = r * C + c;
      const double factor = in.row_factors.of(r) * keep_factor(in.dropout, i);
      s[c] = in.residual[i] + T(factor) * (in.bias ? in.x[i] + in.bias[c] : in.x[i]);
      if (in.sum) in.sum[i] = s[c];
    }
    rstd[r] = norm_reference(s.data(), C, in.norm, y + r * C, normalised + r * C);
  }
}

// With g = dy weight and n = normalised: ds = rstd (g - mean(g) - n mean(g n)) + d_sum.
template <class T>
void residual_dropout_norm_reference_backward(Rows size, const NormGradients<T>& grad) {
  const int64_t C = size.C;
  for (T* sums : {grad.d_weight, grad.d_norm_bias, grad.d_bias}) {
    for (int64_t c = 0; c < C && sums; ++c) sums[c] = T(0);
  }
  for (int64_t r = 0; r < size.rows; ++r) {
    const T *dy = grad.dy + r * C, *n = grad.normalised + r * C;
    T sum_g(0), sum_gn(0);
    for (int64_t c = 0; c < C; ++c) {
      sum_g += dy[c] * grad.weight[c];
      sum_gn += dy[c] * grad.weight[c] * n[c];
      if (grad.d_weight) grad.d_weight[c] += dy[c] * n[c];
      if (grad.d_norm_bias) grad.d_norm_bias[c] += dy[c];
    }
    const T count(static_cast<double>(C)), mean_g = sum_g / count, mean_gn = sum_gn / count;
    for (int64_t c = 0; c < C; ++c) {
      const int64_t i = r * C + c;
      T ds = grad.rstd[r] * (dy[c] * grad.weight[c] - mean_g - n[c] * mean_gn);
      if (grad.d_sum) ds += grad.d_sum[i];
      const T dx = ds * T(grad.row_factors.of(r) * keep_factor(grad.dropout, i));
      grad.d_residual[i] = ds;
      if (grad.dx) grad.dx[i] = dx;
      if (grad.d_bias) grad.d_bias[c] += dx;
    }
  }
}

}  // namespace elliptical::kernels
