// SPDX-License-Identifier: MIT
//
// Dropout of one place in a model: off outside training, seeded by the pass, the layer and a name.
#pragma once

#include <string_view>

#include "elliptical/nn/pass.h"
#include "elliptical/ops/dropout.h"

namespace elliptical::nn {

inline ops::ElementDropout element_dropout(const Pass& pass, double p, std::string_view place) {
  if (!pass.training || p == 0.0) return {};
  return {.p = p, .seed = pass.seed(place)};
}

/// drop(x).
at::Tensor drop(const at::Tensor& x, ops::ElementDropout dropout);

}  // namespace elliptical::nn
