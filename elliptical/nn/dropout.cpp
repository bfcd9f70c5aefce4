// SPDX-License-Identifier: MIT
#include "elliptical/nn/dropout.h"

#include <torch/torch.h>

#include "elliptical/ops/dropout.h"

namespace elliptical::nn {

at::Tensor drop(const at::Tensor& x, ops::ElementDropout dropout) {
  return dropout.p == 0.0 ? x : ops::element_dropout(x, dropout);
}

}  // namespace elliptical::nn
