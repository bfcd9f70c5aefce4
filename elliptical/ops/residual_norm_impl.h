// SPDX-License-Identifier: MIT
#pragma once

#include "elliptical/ops/residual_norm.h"

namespace elliptical::ops {

void check_residual_norm(const at::Tensor& x,
                         const at::Tensor& residual,
                         const std::optional<at::Tensor>& factors,
                         const NormWeights& norm);

/// factors (B) in the shape in which they multiply x (B, ..., C).
at::Tensor per_sample(const at::Tensor& factors, const at::Tensor& x);

/// Checked float32 on the CPU.
at::Tensor residual_dropout_norm_fused(const at::Tensor& x,
                                       const std::optional<at::Tensor>& bias,
                                       const at::Tensor& residual,
                                       const NormWeights& norm,
                                       ElementDropout dropout);
NormedSum residual_norm_fused(const at::Tensor& x,
                              const at::Tensor& residual,
                              const std::optional<at::Tensor>& factors,
                              const NormWeights& norm);

}  // namespace elliptical::ops
