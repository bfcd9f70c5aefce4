// SPDX-License-Identifier: MIT
#pragma once

#include "elliptical/ops/feed_forward.h"

namespace elliptical::ops {

/// Throws unless up (F, C), up_bias (F) and down (C, F) go with x (..., C); `op` opens the message.
void check_feed_forward_maps(const char* op, const at::Tensor& x, const FeedForwardWeights& maps);

/// Checked float32 on the CPU.
at::Tensor bias_relu_dropout_fused(const at::Tensor& x,
                                   const at::Tensor& bias,
                                   ElementDropout dropout);
at::Tensor feed_forward_fused(const at::Tensor& x,
                              const FeedForwardWeights& weights,
                              ElementDropout dropout);

}  // namespace elliptical::ops
