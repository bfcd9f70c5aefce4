// SPDX-License-Identifier: MIT
//
// Matrix products of a layer y = x W^T + b, forward and backward, float32, without torch:
//
//   row_product       out[r, n] = bias[n] + sum_k a[r, k] b[k, n]     y = x W^T + b,  dx = dy W
//   gradient_product  out[i, j] = sum_t a[t, i] b[t, j]               dW = dy^T x
//   column_sums       out[c]    = sum_r x[r, c]                       db
//
// Each element of a result is summed by one task in one order, wherever the blocks of rows around
// it begin, so results have the same bits for any number of threads. The slow, obvious version is
// product_reference.h.
#pragma once

#include <cstdint>

#include "elliptical/kernels/parallel.h"
#include "elliptical/kernels/rows.h"

namespace elliptical::kernels {

/// A matrix in memory: element (i, j) is data[i * stride_row + j * stride_column].
struct ConstMatrix {
  const float* data = nullptr;
  int64_t stride_row = 0, stride_column = 0;

  ConstMatrix transposed() const { return {data, stride_column, stride_row}; }
};

/// Floats that the (K, N) matrix `b` of a row_product takes in packed form, on any instruction set.
inline int64_t packed_size(int64_t K, int64_t N) { return K * ((N + 31) / 32 * 32); }

/// Writes b (K, N) as panels of neighbouring columns, in the order in which products read it. One
/// of its strides must be 1.
void pack(int64_t K, int64_t N, ConstMatrix b, float* packed, const ParallelFor& parallel_for);

struct RowProduct {
  int64_t rows = 0, K = 0, N = 0;
  const float* a = nullptr;  ///< (rows, K), contiguous
  const float* packed = nullptr;
  const float* bias = nullptr;  ///< (N); null: none
  float* out = nullptr;         ///< (rows, N), contiguous
};
void row_product(const RowProduct& product, const ParallelFor& parallel_for);

struct GradientProduct {
  int64_t T = 0, I = 0, J = 0;
  const float* a = nullptr;  ///< (T, I), contiguous
  const float* b = nullptr;  ///< (T, J), contiguous
  float* out = nullptr;      ///< (I, J), contiguous
  bool adds = false;         ///< to what is in `out`
};
void gradient_product(const GradientProduct& product, const ParallelFor& parallel_for);

void column_sums(Rows size, const float* x, float* sums, const ParallelFor& parallel_for);

}  // namespace elliptical::kernels
