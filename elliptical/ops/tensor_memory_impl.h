// SPDX-License-Identifier: MIT
//
// Tensors as kernels take them: pointers and strides. Whoever calls has checked dtype and layout.
#pragma once

#include <ATen/core/Tensor.h>

#include "elliptical/kernels/attention.h"
#include "elliptical/kernels/rows.h"

namespace elliptical::ops {

/// The numbers of a contiguous float tensor.
inline const float* read(const at::Tensor& t) { return t.const_data_ptr<float>(); }
inline float* write(const at::Tensor& t) { return t.mutable_data_ptr<float>(); }

/// A tensor of four dimensions with any strides.
template <class T = float>
kernels::View<const T> read_view(const at::Tensor& t) {
  return {t.const_data_ptr<T>(), t.stride(0), t.stride(1), t.stride(2), t.stride(3)};
}
inline kernels::View<float> write_view(const at::Tensor& t) {
  return {t.mutable_data_ptr<float>(), t.stride(0), t.stride(1), t.stride(2), t.stride(3)};
}

/// x (..., C) as rows of C numbers.
inline kernels::Rows rows_of(const at::Tensor& x) {
  const int64_t C = x.size(-1);
  return {C == 0 ? 0 : x.numel() / C, C};
}

}  // namespace elliptical::ops
