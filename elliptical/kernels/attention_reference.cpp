// SPDX-License-Identifier: MIT
#include "elliptical/kernels/attention_reference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "elliptical/kernels/dropout.h"
#include "elliptical/kernels/visible.h"

namespace elliptical::kernels {
namespace {

/// One row of attention: query n of head h in batch item b.
template <class T>
class Row {
 public:
  Row(const AttentionInputs<T>& in, int64_t b, int64_t h, int64_t n)
      : in_(in), b_(b), h_(h), n_(n), hk_(h / (in.sizes.H / in.sizes.Hk)) {}

  T q(int64_t i) const { return in_.q.row(b_, h_, n_)[i * in_.q.stride_d]; }
  T m(int64_t i) const {
    return in_.metric ? in_.metric.row(b_, h_, n_)[i * in_.metric.stride_d] : T(1);
  }
  T k(int64_t j, int64_t i) const { return in_.k.row(b_, hk_, j)[i * in_.k.stride_d]; }
  T v(int64_t j, int64_t i) const { return in_.v.row(b_, hk_, j)[i * in_.v.stride_d]; }

  /// s[n,j] of attention.h, -inf where key j is not visible.
  T score(int64_t j) const {
    const T hidden = -std::numeric_limits<T>::infinity();
    if (j >= visible_keys(in_, b_, n_)) return hidden;
    if (in_.mask_keep && !in_.mask_keep.row(b_, h_, n_)[j * in_.mask_keep.stride_d]) return hidden;
    const T bias = in_.mask_add ? in_.mask_add.row(b_, h_, n_)[j * in_.mask_add.stride_d] : T(0);
    if (bias == hidden) return hidden;  // a NaN in a hidden key stays hidden
    T dot = 0;
    for (int64_t i = 0; i < in_.sizes.D; ++i) dot += q(i) * m(i) * k(j, i);
    return static_cast<T>(in_.scale) * dot + bias;
  }

  int64_t hk() const { return hk_; }

 private:
  const AttentionInputs<T>& in_;
  int64_t b_, h_, n_, hk_;
};

template <class T, class Body>
void for_each_row(const AttentionInputs<T>& in, Body body) {
  for (int64_t b = 0; b < in.sizes.B; ++b)
    for (int64_t h = 0; h < in.sizes.H; ++h)
      for (int64_t n = 0; n < in.sizes.N; ++n) body(b, h, n, (b * in.sizes.H + h) * in.sizes.N + n);
}

template <class T>
void fill_zero(const View<T>& view, int64_t B, int64_t H, int64_t N, int64_t D) {
  for (int64_t b = 0; b < B; ++b)
    for (int64_t h = 0; h < H; ++h)
      for (int64_t n = 0; n < N; ++n) std::fill_n(view.row(b, h, n), D, T(0));
}

}  // namespace

template <class T>
void attention_reference_forward(const AttentionInputs<T>& in, const AttentionOutputs<T>& out) {
  const AttentionSizes& sizes = in.sizes;
  const Dropout dropout(in.dropout_p, in.dropout_seed);
  const T hidden = -std::numeric_limits<T>::infinity();
  std::vector<T> s(static_cast<size_t>(sizes.M));

  for_each_row(in, [&](int64_t b, int64_t h, int64_t n, int64_t row_index) {
    const Row<T> row(in, b, h, n);
    T row_max = hidden;
    for (int64_t j = 0; j < sizes.M; ++j) {
      s[j] = row.score(j);
      if (s[j] > row_max || std::isnan(s[j])) row_max = s[j];
    }
    T row_sum = 0;
    for (int64_t j = 0; j < sizes.M; ++j) {
      if (s[j] != hidden) row_sum += std::exp(s[j] - row_max);
    }

    T* o = out.o.row(b, h, n);
    std::fill_n(o, sizes.Dv, T(0));
    for (int64_t j = 0; j < sizes.M; ++j) {
      if (s[j] == hidden || !dropout.keeps(b * sizes.H + h, n, j)) continue;
      const T p = std::exp(s[j] - row_max) / row_sum * static_cast<T>(dropout.keep_scale);
      for (int64_t i = 0; i < sizes.Dv; ++i) o[i] += p * row.v(j, i);
    }
    if (out.lse) out.lse[row_index] = row_sum == 0 ? hidden : row_max + std::log(row_sum);
    if (out.row_max) out.row_max[row_index] = row_max;
    if (out.row_sum) out.row_sum[row_index] = row_sum;
  });
}

// With p = softmax(s), z the dropout factor (0 or 1/(1-p_drop)), dp[j] = z[j] * dot(d_o, v[j]):
//   ds[j] = p[j] * (dp[j] - sum_l p[l] dp[l] + d_lse),  dv[j] += p[j] z[j] d_o,
//   dq[i] += ds[j] scale m[i] k[j,i],  dk[j,i] += ds[j] scale m[i] q[i],
//   dm[i] += ds[j] scale q[i] k[j,i].
template <class T>
void attention_reference_backward(const AttentionInputs<T>& in, const AttentionGradients<T>& grad) {
  const AttentionSizes& sizes = in.sizes;
  const Dropout dropout(in.dropout_p, in.dropout_seed);
  const T hidden = -std::numeric_limits<T>::infinity();
  const T scale = static_cast<T>(in.scale);
  const bool metric_per_query = in.metric && in.metric.stride_n != 0;

  fill_zero(grad.dq, sizes.B, sizes.H, sizes.N, sizes.D);
  fill_zero(grad.dk, sizes.B, sizes.Hk, sizes.M, sizes.D);
  fill_zero(grad.dv, sizes.B, sizes.Hk, sizes.M, sizes.Dv);
  if (grad.d_metric) {
    fill_zero(grad.d_metric, sizes.B, sizes.H, metric_per_query ? sizes.N : 1, sizes.D);
  }

  for_each_row(in, [&](int64_t b, int64_t h, int64_t n, int64_t row_index) {
    if (grad.row_sum[row_index] == 0) return;
    const Row<T> row(in, b, h, n);
    const T* d_o = grad.d_o.row(b, h, n);
    const T* o = grad.o.row(b, h, n);
    T delta = grad.d_lse ? -grad.d_lse[row_index] : T(0);
    for (int64_t i = 0; i < sizes.Dv; ++i)
      delta += d_o[i * grad.d_o.stride_d] * o[i * grad.o.stride_d];

    for (int64_t j = 0; j < sizes.M; ++j) {
      const T s = row.score(j);
      if (s == hidden) continue;
      const T p = std::exp(s - grad.row_max[row_index]) / grad.row_sum[row_index];
      const T z = dropout.keeps(b * sizes.H + h, n, j) ? static_cast<T>(dropout.keep_scale) : T(0);

      T dp = 0;
      T* dv = grad.dv.row(b, row.hk(), j);
      for (int64_t i = 0; i < sizes.Dv; ++i) {
        dp += z * d_o[i * grad.d_o.stride_d] * row.v(j, i);
        dv[i] += p * z * d_o[i * grad.d_o.stride_d];
      }
      const T ds = p * (dp - delta) * scale;
      T* dq = grad.dq.row(b, h, n);
      T* dk = grad.dk.row(b, row.hk(), j);
      for (int64_t i = 0; i < sizes.D; ++i) {
        dq[i] += ds * row.m(i) * row.k(j, i);
        dk[i] += ds * row.m(i) * row.q(i);
        if (grad.d_metric) grad.d_metric.row(b, h, n)[i] += ds * row.q(i) * row.k(j, i);
      }
    }
  });
}

template void attention_reference_forward(const AttentionInputs<float>&,
                                          const AttentionOutputs<float>&);
template void attention_reference_forward(const AttentionInputs<double>&,
                                          const AttentionOutputs<double>&);
template void attention_reference_backward(const AttentionInputs<float>&,
                                           const AttentionGradients<float>&);
template void attention_reference_backward(const AttentionInputs<double>&,
                                           const AttentionGradients<double>&);

}  // namespace elliptical::kernels
