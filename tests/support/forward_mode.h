// SPDX-License-Identifier: MIT
//
// Forward-mode derivatives in C++, as torch.autograd.forward_ad has them in Python.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

namespace elliptical::support {

struct DualValue {
  at::Tensor primal, tangent;  ///< no tangent: undefined
};

/// The function's value and derivative along `tangents`, one for each input that has numbers with
/// fractions; others are undefined.
DualValue forward_derivative(
    const std::function<at::Tensor(const std::vector<at::Tensor>&)>& function,
    const std::vector<at::Tensor>& inputs,
    const std::vector<at::Tensor>& tangents);

}  // namespace elliptical::support
