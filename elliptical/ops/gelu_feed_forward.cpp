// SPDX-License-Identifier: MIT
#include "elliptical/ops/gelu_feed_forward.h"

#include "elliptical/ops/feed_forward_impl.h"
#include "elliptical/ops/fused_layer_impl.h"
#include "elliptical/ops/gelu_feed_forward_impl.h"
#include "elliptical/ops/layer_checks_impl.h"
#include "elliptical/ops/product_impl.h"
#include "elliptical/ops/residual_norm_impl.h"

namespace elliptical::ops {
namespace {

void check_gelu_feed_forward(const at::Tensor& x, const GeluFeedForwardWeights& weights) {
  constexpr const char* op = "gelu_feed_forward";
  check_feed_forward_maps(op, x, {weights.up, weights.up_bias, weights.down});
  check_row(op, "down_bias", weights.down_bias, x);
}

/// For products that pack their weights.
bool has_enough_rows(const at::Tensor& x) {
  return x.size(-1) > 0 && x.numel() >= kFewestRows * x.size(-1);
}

}  // namespace

at::Tensor gelu_feed_forward(const at::Tensor& x, const GeluFeedForwardWeights& weights) {
  check_gelu_feed_forward(x, weights);
  return fused_layer_applies(x) && has_enough_rows(x) ? gelu_feed_forward_fused(x, weights)
                                                      : gelu_feed_forward_composite(x, weights);
}

NormedSum normed_feed_forward(const at::Tensor& x,
                              const at::Tensor& residual,
                              const NormWeights& before,
                              const GeluFeedForwardWeights& weights,
                              const NormWeights& after) {
  const auto& [up, up_bias, down, down_bias] = weights;
  check_residual_norm(x, residual, {}, before);
  check_residual_norm(x, residual, {}, after);
  check_gelu_feed_forward(x, weights);
  const bool needs_gradient =
      any_requires_grad({&x, &residual, &before.weight, &before.bias, &up, &up_bias, &down,
                         &down_bias, &after.weight, &after.bias});
  if (fused_layer_applies(x) && has_enough_rows(x) && !needs_gradient) {
    return normed_feed_forward_fused(x, residual, before, weights, after);
  }
  const NormedSum middle = residual_norm(x, residual, {}, before);
  return residual_norm(gelu_feed_forward(middle.normed, weights), middle.sum, {}, after);
}

}  // namespace elliptical::ops
