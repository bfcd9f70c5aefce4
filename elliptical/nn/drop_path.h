// SPDX-License-Identifier: MIT
//
// Stochastic depth: in training a whole residual branch of a sample is left out with probability p
// and multiplied by 1 / (1 - p) otherwise, so that its mean stays.
#pragma once

#include <optional>
#include <string_view>

#include "elliptical/nn/pass.h"

namespace elliptical::nn {

/// The factor of each sample of `branch` (B, ...): (B), of its type; nothing outside training. A
/// function of the pass's key, the layer, the place and the sample.
std::optional<at::Tensor> drop_path_factors(const at::Tensor& branch,
                                            double p,
                                            const Pass& pass,
                                            std::string_view place);

}  // namespace elliptical::nn
