// SPDX-License-Identifier: MIT
//
// Shapes as error messages show them: "(2, 4, 1|128, 64)". Sizes are SymInt because checks also run
// while torch.compile traces with symbolic shapes.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/SymIntArrayRef.h>

#include <sstream>
#include <string>

namespace elliptical::ops {

inline std::string size_text(const c10::SymInt& size) {
  std::ostringstream stream;
  stream << size;
  return stream.str();
}

/// "(2, 3)" for a tensor of shape 2 x 3.
inline std::string shape_text(const at::Tensor& tensor) {
  std::string text = "(";
  for (const c10::SymInt& size : tensor.sym_sizes()) {
    text += (text.size() > 1 ? ", " : "") + size_text(size);
  }
  return text + ")";
}

}  // namespace elliptical::ops
