// SPDX-License-Identifier: MIT
//
// First values of parameters as a function of a key: the same for every thread count and whatever
// was made before. Two models whose parameters have the same name and shape start equal there,
// which is what pairs comparisons.
#pragma once

#include <ATen/core/Tensor.h>

#include "elliptical/base/random.h"

namespace elliptical::nn {

/// Fills a contiguous float tensor with N(mean, std^2).
void fill_normal(at::Tensor& tensor, double mean, double std, RandomKey key);

/// Fills a contiguous float tensor with numbers uniform in [-bound, bound).
void fill_uniform(at::Tensor& tensor, double bound, RandomKey key);

}  // namespace elliptical::nn
