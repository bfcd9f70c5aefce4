// SPDX-License-Identifier: MIT
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include "elliptical/ops/dropout_impl.h"
#include "elliptical/ops/feed_forward.h"

namespace elliptical::ops {

at::Tensor bias_relu_dropout_composite(const at::Tensor& x,
                                       const at::Tensor& bias,
                                       ElementDropout dropout) {
  return drop((x + bias).relu(), dropout);
}

at::Tensor feed_forward_composite(const at::Tensor& x,
                                  const FeedForwardWeights& weights,
                                  ElementDropout dropout) {
  const auto& [up, up_bias, down] = weights;
  return at::linear(bias_relu_dropout_composite(at::linear(x, up), up_bias, dropout), down);
}

}  // namespace elliptical::ops
