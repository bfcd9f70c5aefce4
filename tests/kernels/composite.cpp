// SPDX-License-Identifier: MIT
#include "tests/kernels/composite.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "elliptical/kernels/dropout.h"
#include "elliptical/kernels/visible.h"

namespace elliptical::kernels::test {
namespace {

/// A (rows, columns) matrix.
template <class T>
struct Matrix {
  Matrix(int64_t rows_in, int64_t columns_in)
      : rows(rows_in), columns(columns_in), values(static_cast<size_t>(rows * columns)) {}
  T& operator()(int64_t row, int64_t column) { return values[row * columns + column]; }
  T operator()(int64_t row, int64_t column) const { return values[row * columns + column]; }

  int64_t rows, columns;
  std::vector<T> values;
};

/// Terms summed one after the other. Matrix products of common BLAS libraries do the same over
/// longer runs: this yardstick is a little stricter than theirs.
constexpr int64_t kSumRun = 64;

/// sum of term(i) for i in [begin, end): halves are summed apart, down to runs of kSumRun.
template <class T, class Term>
T pairwise_sum(int64_t begin, int64_t end, const Term& term) {
  if (end - begin <= kSumRun) {
    T sum = 0;
    for (int64_t i = begin; i < end; ++i) sum += term(i);
    return sum;
  }
  const int64_t middle = begin + ((end - begin) / 2 + kSumRun - 1) / kSumRun * kSumRun;
  return pairwise_sum<T>(begin, middle, term) + pairwise_sum<T>(middle, end, term);
}

template <class Term>
double norm2(int64_t count, const Term& term) {
  return std::sqrt(pairwise_sum<double>(0, count, [&](int64_t i) { return term(i) * term(i); }));
}

/// One head of one batch item as matrices: everything before any sum.
template <class T>
struct Head {
  Head(const Problem<T>& problem, int64_t b, int64_t h);

  Matrix<T> q, m, qm, k, v, d_o;
  Matrix<T> bias;  ///< (N, M), -inf where hidden
  Matrix<T> z;     ///< (N, M), the dropout factor: 0 or 1 / (1 - p)
  std::vector<T> d_lse;
  T scale;

  bool hidden(int64_t n, int64_t j) const { return std::isinf(bias(n, j)); }
};

template <class T>
Matrix<T> slice(const StridedArray<T>& array, int64_t b, int64_t h) {
  Matrix<T> result(array.sizes()[2], array.sizes()[3]);
  for (int64_t n = 0; n < result.rows; ++n)
    for (int64_t i = 0; i < result.columns; ++i) result(n, i) = array.at(b, h, n, i);
  return result;
}

template <class T>
Head<T>::Head(const Problem<T>& problem, int64_t b, int64_t h)
    : q(slice(problem.q, b, h)),
      m(q),
      qm(q),
      k(slice(problem.k, b, h / (problem.options.sizes.H / problem.options.sizes.Hk))),
      v(slice(problem.v, b, h / (problem.options.sizes.H / problem.options.sizes.Hk))),
      d_o(slice(problem.d_o, b, h)),
      bias(q.rows, k.rows),
      z(q.rows, k.rows),
      d_lse(static_cast<size_t>(q.rows)),
      scale(static_cast<T>(problem.options.logit_scale())) {
  const AttentionInputs<T> in = problem.inputs();
  const Dropout dropout(in.dropout_p, in.dropout_seed);
  const T minus_inf = -std::numeric_limits<T>::infinity();
  for (int64_t n = 0; n < q.rows; ++n) {
    for (int64_t i = 0; i < q.columns; ++i) {
      m(n, i) = problem.metric ? problem.metric.at(b, h, n, i) : T(1);
      qm(n, i) = q(n, i) * m(n, i);
    }
    for (int64_t j = 0; j < k.rows; ++j) {
      const bool seen =
          j < visible_keys(in, b, n) && (!problem.mask_keep || problem.mask_keep.at(b, h, n, j));
      bias(n, j) = !seen ? minus_inf : problem.mask_add ? problem.mask_add.at(b, h, n, j) : T(0);
      z(n, j) = dropout.keeps(b * in.sizes.H + h, n, j) ? static_cast<T>(dropout.keep_scale) : T(0);
    }
    if (!problem.d_lse.empty()) d_lse[n] = problem.d_lse[(b * in.sizes.H + h) * q.rows + n];
  }
}

/// Probabilities of a head, (N, M); 0 where hidden.
template <class T>
Matrix<T> softmax(const Head<T>& head, T* lse) {
  Matrix<T> p(head.q.rows, head.k.rows);
  for (int64_t n = 0; n < p.rows; ++n) {
    T row_max = -std::numeric_limits<T>::infinity();
    for (int64_t j = 0; j < p.columns; ++j) {
      p(n, j) = head.bias(n, j);
      if (head.hidden(n, j)) continue;
      p(n, j) += head.scale * pairwise_sum<T>(0, head.q.columns, [&](int64_t i) {
                   return head.qm(n, i) * head.k(j, i);
                 });
      row_max = std::max(row_max, p(n, j));
    }
    for (int64_t j = 0; j < p.columns; ++j)
      p(n, j) = head.hidden(n, j) ? T(0) : std::exp(p(n, j) - row_max);
    const T row_sum = pairwise_sum<T>(0, p.columns, [&](int64_t j) { return p(n, j); });
    lse[n] = row_max + std::log(row_sum);
    if (row_sum == 0) continue;
    for (int64_t j = 0; j < p.columns; ++j) p(n, j) /= row_sum;
  }
  return p;
}

template <class T>
void add_head(const Problem<T>& problem, int64_t b, int64_t h, Result<T>& result) {
  const Head<T> head(problem, b, h);
  const auto& [B, H, Hk, N, M, D, Dv] = problem.options.sizes;
  const int64_t hk = h / (H / Hk);
  const Matrix<T> p = softmax(head, result.lse.data() + (b * H + h) * N);

  Matrix<T> ds(N, M);  // gradient of the scores
  for (int64_t n = 0; n < N; ++n) {
    for (int64_t i = 0; i < Dv; ++i) {
      result.o.at(b, h, n, i) =
          pairwise_sum<T>(0, M, [&](int64_t j) { return p(n, j) * head.z(n, j) * head.v(j, i); });
    }
    for (int64_t j = 0; j < M; ++j) {
      ds(n, j) = head.z(n, j) *
                 pairwise_sum<T>(0, Dv, [&](int64_t i) { return head.d_o(n, i) * head.v(j, i); });
    }
    const T mean = pairwise_sum<T>(0, M, [&](int64_t j) { return p(n, j) * ds(n, j); });
    for (int64_t j = 0; j < M; ++j) {
      ds(n, j) = p(n, j) * (ds(n, j) - mean + head.d_lse[n]) * head.scale;
    }
  }

  Matrix<T> d_qm(N, D);
  for (int64_t n = 0; n < N; ++n) {
    for (int64_t i = 0; i < D; ++i) {
      d_qm(n, i) = pairwise_sum<T>(0, M, [&](int64_t j) { return ds(n, j) * head.k(j, i); });
      result.dq.at(b, h, n, i) = d_qm(n, i) * head.m(n, i);
    }
  }
  for (int64_t i = 0; i < D && result.d_metric; ++i) {
    const auto term = [&](int64_t n) { return d_qm(n, i) * head.q(n, i); };
    if (problem.metric_rows() == 1 && problem.options.has_metric_row()) {
      result.d_metric.at(b, h, 0, i) = pairwise_sum<T>(0, N, term);
    } else {
      for (int64_t n = 0; n < N; ++n) result.d_metric.at(b, h, n, i) = term(n);
    }
  }
  for (int64_t j = 0; j < M; ++j) {
    for (int64_t i = 0; i < D; ++i) {
      result.dk.at(b, hk, j, i) +=
          pairwise_sum<T>(0, N, [&](int64_t n) { return ds(n, j) * head.qm(n, i); });
    }
    for (int64_t i = 0; i < Dv; ++i) {
      result.dv.at(b, hk, j, i) +=
          pairwise_sum<T>(0, N, [&](int64_t n) { return p(n, j) * head.z(n, j) * head.d_o(n, i); });
    }
  }
}

template <class T>
void fill_zero(StridedArray<T>& array) {
  array.for_each([&](int64_t b, int64_t h, int64_t n, int64_t d) { array.at(b, h, n, d) = T(0); });
}

/// Error scales of one head; the tensors' scales grow to the maximum over heads.
void raise_scales(const Problem<double>& problem,
                  int64_t b,
                  int64_t h,
                  std::map<std::string, double>& scales) {
  const Head<double> head(problem, b, h);
  const auto& [B, H, Hk, N, M, D, Dv] = problem.options.sizes;
  std::vector<double> lse(static_cast<size_t>(N));
  const Matrix<double> p = softmax(head, lse.data());
  const auto raise = [&](const std::string& name, double value) {
    scales[name] = std::max(scales[name], value);
  };

  Matrix<double> p_error(N, M), ds_error(N, M);
  for (int64_t n = 0; n < N; ++n) {
    double score_error = 1.0;  // error of the largest score, exp and sum
    for (int64_t j = 0; j < M; ++j) {
      if (head.hidden(n, j)) continue;
      const double terms = norm2(D, [&](int64_t i) { return head.qm(n, i) * head.k(j, i); });
      score_error =
          std::max(score_error, 1.0 + std::abs(head.scale) * terms + std::abs(head.bias(n, j)));
      raise("lse", score_error + std::abs(lse[n]));
    }
    for (int64_t j = 0; j < M; ++j) {
      p_error(n, j) = p(n, j) * score_error;
      ds_error(n, j) =
          head.z(n, j) * norm2(Dv, [&](int64_t i) { return head.d_o(n, i) * head.v(j, i); });
    }
    const double mean_error = norm2(M, [&](int64_t j) { return p_error(n, j) * ds_error(n, j); });
    for (int64_t j = 0; j < M; ++j) {
      ds_error(n, j) = p_error(n, j) * (ds_error(n, j) + mean_error + std::abs(head.d_lse[n])) *
                       std::abs(head.scale);
    }
    for (int64_t i = 0; i < Dv; ++i) {
      raise("o", norm2(M, [&](int64_t j) { return p_error(n, j) * head.z(n, j) * head.v(j, i); }));
    }
  }
  const double group = std::sqrt(static_cast<double>(H / Hk));
  for (int64_t i = 0; i < D; ++i) {
    double column = 0;
    for (int64_t n = 0; n < N; ++n) {
      const double d_qm = norm2(M, [&](int64_t j) { return ds_error(n, j) * head.k(j, i); });
      raise("dq", d_qm * head.m(n, i));
      raise("d_metric", d_qm * std::abs(head.q(n, i)));
      column = std::hypot(column, d_qm * head.q(n, i));
    }
    if (problem.options.has_metric_row()) raise("d_metric", column);
  }
  for (int64_t j = 0; j < M; ++j) {
    for (int64_t i = 0; i < D; ++i) {
      raise("dk", group * norm2(N, [&](int64_t n) { return ds_error(n, j) * head.qm(n, i); }));
    }
    for (int64_t i = 0; i < Dv; ++i) {
      raise("dv", group * norm2(N, [&](int64_t n) {
                    return p_error(n, j) * head.z(n, j) * head.d_o(n, i);
                  }));
    }
  }
}

}  // namespace

template <class T>
Result<T> run_composite(const Problem<T>& problem) {
  Result<T> result(problem.options);
  for (StridedArray<T>* gradient : {&result.dk, &result.dv, &result.d_metric}) fill_zero(*gradient);
  for (int64_t b = 0; b < problem.options.sizes.B; ++b)
    for (int64_t h = 0; h < problem.options.sizes.H; ++h) add_head(problem, b, h, result);
  return result;
}

std::map<std::string, double> error_scales(const Problem<double>& problem) {
  std::map<std::string, double> scales;
  for (int64_t b = 0; b < problem.options.sizes.B; ++b)
    for (int64_t h = 0; h < problem.options.sizes.H; ++h) raise_scales(problem, b, h, scales);
  return scales;
}

template <class T>
double max_error(const std::vector<T>& actual, const std::vector<double>& exact) {
  EXPECT_EQ(actual.size(), exact.size());
  double result = 0;
  for (size_t i = 0; i < actual.size(); ++i) {
    if (static_cast<double>(actual[i]) == exact[i]) continue;
    const double error = std::abs(static_cast<double>(actual[i]) - exact[i]);
    if (!std::isfinite(error)) return std::numeric_limits<double>::infinity();
    result = std::max(result, error);
  }
  return result;
}

void expect_accurate(const Result<float>& kernel,
                     const Result<float>& composite,
                     const Result<double>& exact,
                     const std::map<std::string, double>& scales,
                     const std::string& what) {
  const auto kernel_tensors = tensors(kernel);
  const auto composite_tensors = tensors(composite);
  const auto exact_tensors = tensors(exact);
  for (size_t t = 0; t < exact_tensors.size(); ++t) {
    const auto& [name, values] = exact_tensors[t];
    const auto scale = scales.find(name);
    const double unit = 0x1p-23 * (scale == scales.end() ? 0.0 : scale->second);
    const double composite_error = max_error(composite_tensors[t].values, values);
    const double kernel_error = max_error(kernel_tensors[t].values, values);
    EXPECT_LE(kernel_error, 2 * composite_error + 4 * unit)
        << name << ": kernel error " << kernel_error << ", composite error " << composite_error
        << ", error scale " << unit << "; " << what;
  }
}

template Result<float> run_composite(const Problem<float>&);
template Result<double> run_composite(const Problem<double>&);
template double max_error(const std::vector<float>&, const std::vector<double>&);
template double max_error(const std::vector<double>&, const std::vector<double>&);

}  // namespace elliptical::kernels::test
