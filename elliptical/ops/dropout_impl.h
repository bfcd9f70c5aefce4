// SPDX-License-Identifier: MIT
//
// What every layer with dropout needs: the check of its numbers, the mask as a tensor, the rule of
// the kernels, and a place for it in an autograd node.
#pragma once

#include "elliptical/kernels/dropout.h"
#include "elliptical/ops/dropout.h"

namespace torch::autograd {
struct AutogradContext;
}

namespace elliptical::ops {

/// Throws c10::ValueError unless p is in [0, 1); `op` opens the message.
void check_dropout(const char* op, ElementDropout dropout);

/// x with the mask on it, by plain ATen operations; x itself where nothing is dropped.
at::Tensor drop(const at::Tensor& x, ElementDropout dropout);

/// Checked float32 on the CPU.
at::Tensor element_dropout_fused(const at::Tensor& x, ElementDropout dropout);

inline kernels::ElementDropout dropout_rule(ElementDropout dropout) {
  return {dropout.p, static_cast<uint64_t>(dropout.seed)};
}

/// Keeps p and seed for the backward, and gives them back.
void keep_dropout(torch::autograd::AutogradContext* ctx, ElementDropout dropout);
kernels::ElementDropout kept_dropout(torch::autograd::AutogradContext* ctx);

}  // namespace elliptical::ops
