// SPDX-License-Identifier: MIT
//
// The layers between the matrix products of a transformer block, forward and backward, each in one
// pass over memory. Everything is contiguous float32: matrices (rows, C), vectors (C). Dropout
// multiplies element i of the call's matrix by 0 or 1 / (1 - p), computed again in the backward.
//
//   bias_relu_dropout      y = drop(max(x + bias, 0))
//   residual_dropout_norm  y = normalised * weight + norm_bias,
//                          normalised = (s - mean(s)) * rstd,  s = residual + f drop(x + bias)
//                          (pre-norm: s itself is kept, and f is a factor of the row's sample)
//   embed                  y[t] = drop(scale * table[tokens[t]] + positions[t % N])
//
// Same bits for any number of threads; the same mask for any instruction set. The slow, obvious
// versions are feedforward_reference.h.
#pragma once

#include <cstdint>

#include "elliptical/kernels/dropout.h"
#include "elliptical/kernels/parallel.h"

namespace elliptical::kernels {

struct Rows {
  int64_t rows = 0, C = 0;
};

/// y may be x.
void bias_relu_dropout_forward(Rows size,
                               const float* x,
                               const float* bias,
                               const ElementDropout& dropout,
                               float* y,
                               const ParallelFor& parallel_for);

/// y is the forward's result: what is 0 there was dropped or negative. dx may be dy. d_bias may be
/// null.
void bias_relu_dropout_backward(Rows size,
                                const float* dy,
                                const float* y,
                                const ElementDropout& dropout,
                                float* dx,
                                float* d_bias,
                                const ParallelFor& parallel_for);

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

template <class T>
struct EmbedInputs {
  const T* table = nullptr;         ///< (V, C)
  const int64_t* tokens = nullptr;  ///< (rows)
  const T* positions = nullptr;     ///< (N, C)
  int64_t N = 1;
  double scale = 1;
  ElementDropout dropout;
};

void embed_forward(Rows size,
                   const EmbedInputs<float>& in,
                   float* y,
                   const ParallelFor& parallel_for);

/// y = factor * drop(x): dropout itself, its gradient, and the gradient of embed's rows. y may be
/// x.
void scaled_dropout(int64_t count,
                    const float* x,
                    double factor,
                    const ElementDropout& dropout,
                    float* y,
                    const ParallelFor& parallel_for);

}  // namespace elliptical::kernels
