// SPDX-License-Identifier: MIT
//
// A linear layer, y = x weight^T + bias, over the product kernels: one autograd node, bias and
// product in one pass, gradients only of what asks for them, same bits for any number of threads.
// float32 on the CPU with enough rows runs fused; everything else is at::linear, which is also the
// tests' reference.
#pragma once

#include <ATen/core/Tensor.h>

namespace elliptical::ops {

/// x (..., K), weight (N, K), bias (N) -> (..., N)
at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

}  // namespace elliptical::ops
