// SPDX-License-Identifier: MIT
//
// The fused forms take checked float32 on the CPU.
#pragma once

#include <initializer_list>

#include "elliptical/ops/gelu_feed_forward.h"

namespace elliptical::ops {

/// factors (B) in the shape in which they multiply x (B, ..., C).
at::Tensor per_sample(const at::Tensor& factors, const at::Tensor& x);

NormedSum residual_norm_fused(const at::Tensor& x,
                              const at::Tensor& residual,
                              const std::optional<at::Tensor>& factors,
                              const at::Tensor& weight,
                              const at::Tensor& norm_bias,
                              double eps);
at::Tensor gelu_feed_forward_fused(const at::Tensor& x,
                                   const at::Tensor& up,
                                   const at::Tensor& up_bias,
                                   const at::Tensor& down,
                                   const at::Tensor& down_bias);

/// No argument requires grad.
NormedSum normed_feed_forward_fused(const at::Tensor& x,
                                    const at::Tensor& residual,
                                    const NormWeights& before,
                                    const GeluFeedForwardWeights& weights,
                                    const NormWeights& after);

/// Whether a gradient can be asked for.
bool any_requires_grad(std::initializer_list<const at::Tensor*> tensors);

}  // namespace elliptical::ops
