// SPDX-License-Identifier: MIT
#include <ATen/Functions.h>

#include "elliptical/ops/gelu_feed_forward.h"

namespace elliptical::ops {

at::Tensor gelu_feed_forward_composite(const at::Tensor& x, const GeluFeedForwardWeights& weights) {
  const auto& [up, up_bias, down, down_bias] = weights;
  return at::linear(at::gelu(at::linear(x, up, up_bias)), down, down_bias);
}

}  // namespace elliptical::ops
