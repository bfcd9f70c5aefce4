// SPDX-License-Identifier: MIT
//
// What the fused layers' autograd functions share: when they apply, and how they refuse what they
// can not do.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>

#include <initializer_list>

#include "elliptical/ops/transforms_impl.h"

namespace elliptical::ops {

/// True when the kernels can take tensors like this one, dense float32 on the CPU, and how torch
/// differentiates now is a way that they know.
inline bool fused_layer_applies(const at::Tensor& x) {
  return x.device().is_cpu() && x.scalar_type() == at::kFloat && x.layout() == at::kStrided &&
         kernels_are_differentiable();
}

/// Whether a gradient of one of them can be asked for; absent tensors are undefined ones.
inline bool any_requires_grad(std::initializer_list<const at::Tensor*> tensors) {
  if (!at::GradMode::is_enabled()) return false;
  for (const at::Tensor* tensor : tensors) {
    if (tensor->defined() && tensor->requires_grad()) return true;
  }
  return false;
}

/// Called first in a backward: it computes values, not a graph of them.
inline void refuse_second_derivative(const char* op) {
  TORCH_CHECK_NOT_IMPLEMENTED(!at::GradMode::is_enabled(), op,
                              ": the fused form has no second derivative (use ", op,
                              "_composite, or double precision)");
}

}  // namespace elliptical::ops
