// SPDX-License-Identifier: MIT
//
// Attention with sinc functions as its formula says it, one pair of a query and a key at a time:
// the version to read first and the one the fast kernel is tested against. Header only: tests
// evaluate it in double, and in numbers that carry error bounds.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "elliptical/kernels/fourier.h"

namespace elliptical::kernels {

/// log max(|sinc(x)|, 1e-20)
inline double log_sinc(double x) {
  return x == 0 ? 0.0 : std::log(std::max(std::abs(std::sin(x) / x), 1e-20));
}

/// d log |sinc(x)| / dx = cot x - 1 / x, by its series where that has no digits; 0 at the floor.
inline double log_sinc_slope(double x) {
  if (std::abs(x) < 1e-3) return -x / 3 - x * x * x / 45;
  if (std::abs(std::sin(x) / x) < 1e-20) return 0.0;
  return (x * std::cos(x) - std::sin(x)) / (x * std::sin(x));
}

/// Query n of batch item b sees keys [0, fourier_visible_keys).
template <class T>
int64_t fourier_visible_keys(const FourierInputs<T>& in, int64_t b, int64_t n) {
  const int64_t keys = in.key_lengths ? std::clamp<int64_t>(in.key_lengths[b], 0, in.M) : in.M;
  if (in.N == in.M && n >= keys) return 0;
  return in.is_causal ? std::clamp<int64_t>(n + 1 + in.M - in.N, 0, keys) : keys;
}

/// s[n,j] of head t.
template <class T>
T fourier_logit(const FourierInputs<T>& in, int64_t t, int64_t n, int64_t j) {
  T sum(0);
  for (int64_t d = 0; d < in.D; ++d) {
    sum += log_sinc(in.a[(t * in.N + n) * in.D + d] - in.b[(t * in.M + j) * in.D + d]);
  }
  return T(4) * sum;
}

/// 0 or 1 / (1 - p).
template <class T>
T fourier_keep_factor(const FourierInputs<T>& in, int64_t t, int64_t n, int64_t j) {
  return T(in.dropout.keeps(t, n, j) ? in.dropout.keep_scale : 0.0);
}

/// Same contract as `fourier_forward`; row_max is in natural units (s, not s * log2 e).
template <class T>
void fourier_reference_forward(const FourierInputs<T>& in, const FourierOutputs<T>& out) {
  using std::exp;
  const auto& [B, H, N, M, D, Dv, a, b, v, key_lengths, is_causal, epsilon, dropout] = in;
  const T log_epsilon(epsilon > 0 ? std::log(epsilon) : -std::numeric_limits<double>::infinity());
  for (int64_t row = 0; row < B * H * N; ++row) {
    const int64_t t = row / N, n = row % N, end = fourier_visible_keys(in, t / H, n);
    std::vector<T> p(static_cast<size_t>(end));
    T max = log_epsilon, sum(0);
    for (int64_t j = 0; j < end; ++j) {
      p[j] = fourier_logit(in, t, n, j);
      if (max < p[j]) max = p[j];
    }
    if (end > 0 && epsilon > 0) sum = exp(log_epsilon - max);
    for (T& value : p) {
      value = exp(value - max);
      sum += value;
    }
    for (int64_t i = 0; i < Dv; ++i) {
      T o(0);
      for (int64_t j = 0; j < end; ++j) {
        o += p[j] / sum * fourier_keep_factor(in, t, n, j) * v[(t * M + j) * Dv + i];
      }
      out.o[row * Dv + i] = o;
    }
    out.row_max[row] = max;
    out.row_sum[row] = sum;
  }
}

// With z the dropout factor and dp[j] = z[j] dot(d_o, v[j]):
//   ds[j] = p[j] (dp[j] - sum_l p[l] dp[l]),  d_v[j] += p[j] z[j] d_o,
//   d_a[n,d] += 4 ds[j] log_sinc'(a[n,d] - b[j,d]), and d_b[j,d] the same with the other sign.
/// Same contract as `fourier_backward`, fed by `fourier_reference_forward`.
template <class T>
void fourier_reference_backward(const FourierInputs<T>& in, const FourierGradients<T>& grad) {
  using std::exp;
  const auto& [B, H, N, M, D, Dv, a, b, v, key_lengths, is_causal, epsilon, dropout] = in;
  std::fill_n(grad.d_a, B * H * N * D, T(0));
  std::fill_n(grad.d_b, B * H * M * D, T(0));
  std::fill_n(grad.d_v, B * H * M * Dv, T(0));
  for (int64_t row = 0; row < B * H * N; ++row) {
    const int64_t t = row / N, n = row % N, end = fourier_visible_keys(in, t / H, n);
    const T *o = grad.o + row * Dv, *d_o = grad.d_o + row * Dv;
    T delta(0);
    for (int64_t i = 0; i < Dv; ++i) delta += o[i] * d_o[i];
    for (int64_t j = 0; j < end; ++j) {
      const T p = exp(fourier_logit(in, t, n, j) - grad.row_max[row]) / grad.row_sum[row];
      const T z = fourier_keep_factor(in, t, n, j);
      T dp(0);
      for (int64_t i = 0; i < Dv; ++i) {
        dp += d_o[i] * v[(t * M + j) * Dv + i];
        grad.d_v[(t * M + j) * Dv + i] += p * z * d_o[i];
      }
      const T ds = T(4) * p * (z * dp - delta);
      for (int64_t d = 0; d < D; ++d) {
        T &d_a = grad.d_a[row * D + d], &d_b = grad.d_b[(t * M + j) * D + d];
        const T slope = log_sinc_slope(a[row * D + d] - b[(t * M + j) * D + d]);
        d_a += ds * slope;
        d_b -= ds * slope;
      }
    }
  }
}

}  // namespace elliptical::kernels
