// SPDX-License-Identifier: MIT
//
// A branch joins the residual stream and is normalised, in one pass over memory, differentiable:
//
//   residual_dropout_norm  y = norm(residual + drop(x + bias)) * weight + norm_bias    (post-norm)
//   residual_norm          sum = residual + f x,  normed = norm(sum) * weight + norm_bias (pre-norm)
//
// f is a factor for each sample (stochastic depth). The norm is over the last dimension. float32 on
// the CPU runs fused; everything else takes the composite path, which is also the tests' reference
// (`*_composite`).
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "elliptical/ops/dropout.h"

namespace elliptical::ops {

struct NormWeights {
  at::Tensor weight, bias;  ///< (C)
  double eps;
};

/// x and residual (..., C), bias (C).
at::Tensor residual_dropout_norm(const at::Tensor& x,
                                 const std::optional<at::Tensor>& bias,
                                 const at::Tensor& residual,
                                 const NormWeights& norm,
                                 ElementDropout dropout);
at::Tensor residual_dropout_norm_composite(const at::Tensor& x,
                                           const std::optional<at::Tensor>& bias,
                                           const at::Tensor& residual,
                                           const NormWeights& norm,
                                           ElementDropout dropout);

struct NormedSum {
  at::Tensor sum, normed;
};

/// x and residual (B, ..., C); factors (B) without gradient, 1 when absent.
NormedSum residual_norm(const at::Tensor& x,
                        const at::Tensor& residual,
                        const std::optional<at::Tensor>& factors,
                        const NormWeights& norm);
NormedSum residual_norm_composite(const at::Tensor& x,
                                  const at::Tensor& residual,
                                  const std::optional<at::Tensor>& factors,
                                  const NormWeights& norm);

}  // namespace elliptical::ops
