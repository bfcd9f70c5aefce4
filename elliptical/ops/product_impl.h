// SPDX-License-Identifier: MIT
//
// Products of linear layers with weights as the kernels read them: packed for each call, unless the
// caller froze them (frozen_weights.h).
#pragma once

#include <ATen/Functions.h>

#include "elliptical/kernels/product.h"
#include "elliptical/ops/frozen_weights_impl.h"
#include "elliptical/ops/parallel_impl.h"

namespace elliptical::ops {

/// Rows from which on packing pays.
inline constexpr int64_t kFewestRows = 64;

/// a (T, K) b (K, N), contiguous; b is packed here. The bias may be undefined.
inline at::Tensor row_product(const at::Tensor& a, const at::Tensor& b, const at::Tensor& bias) {
  const at::Tensor out = at::empty({a.size(0), b.size(1)}, a.options()), packed_b = packed(b);
  kernels::row_product({.rows = a.size(0),
                        .K = b.size(0),
                        .N = b.size(1),
                        .a = a.const_data_ptr<float>(),
                        .packed = packed_b.const_data_ptr<float>(),
                        .bias = bias.defined() ? bias.const_data_ptr<float>() : nullptr,
                        .out = out.mutable_data_ptr<float>()},
                       torch_parallel_for);
  return out;
}

/// out (I, J) = a^T b or, with `adds`, out + a^T b; a (T, I), b (T, J), all contiguous.
inline void gradient_product(const at::Tensor& a,
                             const at::Tensor& b,
                             const at::Tensor& out,
                             bool adds = false) {
  kernels::gradient_product({.T = a.size(0),
                             .I = a.size(1),
                             .J = b.size(1),
                             .a = a.const_data_ptr<float>(),
                             .b = b.const_data_ptr<float>(),
                             .out = out.mutable_data_ptr<float>(),
                             .adds = adds},
                            torch_parallel_for);
}

/// Sums over the rows of x (T, C), contiguous.
inline at::Tensor column_sums(const at::Tensor& x) {
  const at::Tensor sums = at::empty({x.size(1)}, x.options());
  kernels::column_sums({x.size(0), x.size(1)}, x.const_data_ptr<float>(),
                       sums.mutable_data_ptr<float>(), torch_parallel_for);
  return sums;
}

}  // namespace elliptical::ops
