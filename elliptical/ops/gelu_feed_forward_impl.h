// SPDX-License-Identifier: MIT
//
// The fused forms take checked float32 on the CPU.
#pragma once

#include "elliptical/ops/gelu_feed_forward.h"

namespace elliptical::ops {

at::Tensor gelu_feed_forward_fused(const at::Tensor& x, const GeluFeedForwardWeights& weights);

/// No argument requires grad.
NormedSum normed_feed_forward_fused(const at::Tensor& x,
                                    const at::Tensor& residual,
                                    const NormWeights& before,
                                    const GeluFeedForwardWeights& weights,
                                    const NormWeights& after);

}  // namespace elliptical::ops
