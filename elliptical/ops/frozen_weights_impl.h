// SPDX-License-Identifier: MIT
#pragma once

#include <ATen/core/Tensor.h>

namespace elliptical::ops {

/// A weight (K, N) of any strides as the kernels of elliptical/kernels/product.h read it: packed
/// anew, or, while weights are frozen, what was packed before.
at::Tensor packed(const at::Tensor& matrix);

}  // namespace elliptical::ops
