// SPDX-License-Identifier: MIT
#pragma once

#include "elliptical/ops/fourier_attention.h"

namespace elliptical::ops {

/// Checked float32 on the CPU.
at::Tensor fourier_attention_fused(const at::Tensor& a,
                                   const at::Tensor& b,
                                   const at::Tensor& v,
                                   const FourierOptions& options);

}  // namespace elliptical::ops
