// SPDX-License-Identifier: MIT
#include <ATen/Functions.h>
#include <c10/util/Exception.h>

#include "elliptical/ops/layer_checks_impl.h"
#include "elliptical/ops/shape_text_impl.h"

namespace elliptical::ops {

void check_floating(const char* op, const char* name, const at::Tensor& x) {
  TORCH_CHECK_TYPE(at::isFloatingType(x.scalar_type()), op, ": ", name,
                   " must have a floating point dtype, got ", x.scalar_type());
}

void check_rows(const char* op, const at::Tensor& x) {
  check_floating(op, "x", x);
  TORCH_CHECK_VALUE(x.dim() >= 1, op, ": x must be (..., C), got ", shape_text(x));
}

void check_like(const char* op,
                const char* name,
                const at::Tensor& tensor,
                const char* reference_name,
                const at::Tensor& reference) {
  TORCH_CHECK_TYPE(tensor.scalar_type() == reference.scalar_type(), op, ": ", name, " must have ",
                   reference_name, "'s dtype ", reference.scalar_type(), ", got ",
                   tensor.scalar_type());
  TORCH_CHECK_VALUE(tensor.device() == reference.device(), op, ": ", name, " must be on ",
                    reference_name, "'s device ", reference.device(), ", got ", tensor.device());
}

void check_row(const char* op, const char* name, const at::Tensor& tensor, const at::Tensor& x) {
  check_like(op, name, tensor, "x", x);
  TORCH_CHECK_VALUE(tensor.dim() == 1 && tensor.size(0) == x.size(-1), op, ": ", name,
                    " must be (C) = (", x.size(-1), "), got ", shape_text(tensor));
}

void check_indices(const at::Tensor& indices,
                   int64_t size,
                   std::string_view subject,
                   std::string_view size_name) {
  TORCH_CHECK_TYPE(indices.scalar_type() == at::kLong, subject, " must have dtype Long, got ",
                   indices.scalar_type());
  const at::Tensor values = indices.cpu().contiguous();
  const int64_t* index = values.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < values.numel(); ++i) {
    TORCH_CHECK_VALUE(0 <= index[i] && index[i] < size, subject, " must be in [0, ", size_name,
                      ") = [0, ", size, "), got ", index[i], " at element ", i);
  }
}

}  // namespace elliptical::ops
