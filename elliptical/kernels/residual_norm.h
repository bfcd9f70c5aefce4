// SPDX-License-Identifier: MIT
//
// The end of a branch of a transformer block, forward and backward, each in one pass over memory,
// on contiguous float32:
//
//   y = normalised * weight + norm_bias
//   normalised = (s - mean(s)) * rstd,  s = residual + f drop(x + bias)
//
// (pre-norm: s itself is kept, and f is a factor of the row's sample.) Dropout multiplies element i
// of the call's matrix by 0 or 1 / (1 - p), computed again in the backward. Same bits for any number
// of threads; the same mask for any instruction set. The slow, obvious version is
// residual_norm_reference.h.
#pragma once

#include "elliptical/kernels/dropout.h"
#include "elliptical/kernels/parallel.h"
#include "elliptical/kernels/rows.h"

namespace elliptical::kernels {

/// A factor for each group of rows, a sample's; 1 where there are none. Not beside dropout.
struct RowFactors {
  const float* factors = nullptr;
  int64_t rows_per_factor = 1;

  float of(int64_t row) const { return factors ? factors[row / rows_per_factor] : 1.0f; }
};

/// Of a layer norm, (C) each.
template <class T>
struct NormParameters {
  const T* weight = nullptr;
  const T* bias = nullptr;
  double eps = 0;
};

template <class T>
struct NormInputs {
  const T* x = nullptr;
  const T* bias = nullptr;  ///< null: none
  const T* residual = nullptr;
  NormParameters<T> norm;
  ElementDropout dropout;
  RowFactors row_factors = {};
  T* sum = nullptr;  ///< (rows, C): s is written there; null: it is not kept
};

/// Writes y and, unless null, what the backward needs: normalised (rows, C) and rstd (rows).
void residual_dropout_norm_forward(Rows size,
                                   const NormInputs<float>& in,
                                   float* y,
                                   float* normalised,
                                   float* rstd,
                                   const ParallelFor& parallel_for);

template <class T>
struct NormGradients {
  const T* dy = nullptr;
  const T* normalised = nullptr;  ///< of the forward, with rstd
  const T* rstd = nullptr;
  const T* weight = nullptr;
  ElementDropout dropout;
  RowFactors row_factors = {};
  const T* d_sum = nullptr;  ///< gradient of s from elsewhere; null: none
  T* dx = nullptr;           ///< null: not wanted, for it is d_residual
  T* d_residual = nullptr;
  T* d_bias = nullptr;    ///< null: there is none
  T* d_weight = nullptr;  ///< null, with d_norm_bias: not wanted
  T* d_norm_bias = nullptr;
};

void residual_dropout_norm_backward(Rows size,
                                    const NormGradients<float>& grad,
                                    const ParallelFor& parallel_for);

}  // namespace elliptical::kernels
