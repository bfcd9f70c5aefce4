// SPDX-License-Identifier: MIT
//
// The products of product.h as three loops: the version to read first and the one the fast kernels
// are tested against. Operands are those of the kernels, but for the matrix of a row product, which
// is not packed here. Header only: tests sum in double, and in numbers that carry error bounds.
#pragma once

#include <algorithm>
#include <cstdint>

#include "elliptical/kernels/product.h"

namespace elliptical::kernels {

/// out (rows, N) = a b + bias.
template <class T>
void row_product_reference(const RowProduct& p, ConstMatrix b, T* out) {
  for (int64_t r = 0; r < p.rows; ++r) {
    for (int64_t n = 0; n < p.N; ++n) {
      T sum(p.bias ? p.bias[n] : 0.0f);
      for (int64_t k = 0; k < p.K; ++k)
        sum += T(p.a[r * p.K + k]) * T(b.data[k * b.stride_row + n * b.stride_column]);
      out[r * p.N + n] = sum;
    }
  }
}

/// out (I, J) = a^T b, and what is in `p.out` where it is added to.
template <class T>
void gradient_product_reference(const GradientProduct& p, T* out) {
  for (int64_t i = 0; i < p.I; ++i) {
    for (int64_t j = 0; j < p.J; ++j) {
      T sum(p.adds ? p.out[i * p.J + j] : 0.0f);
      for (int64_t t = 0; t < p.T; ++t) sum += T(p.a[t * p.I + i]) * T(p.b[t * p.J + j]);
      out[i * p.J + j] = sum;
    }
  }
}

template <class T>
void column_sums_reference(Rows size, const float* x, T* sums) {
  std::fill_n(sums, size.C, T(0.0f));
  for (int64_t i = 0; i < size.rows * size.C; ++i) sums[i % size.C] += T(x[i]);
}

}  // namespace elliptical::kernels
