// SPDX-License-Identifier: MIT
#include "elliptical/ops/gelu_feed_forward.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <cmath>

#include "elliptical/ops/feed_forward_impl.h"
#include "elliptical/ops/fused_function_impl.h"
#include "elliptical/ops/gelu_feed_forward_impl.h"
#include "elliptical/ops/product_impl.h"
#include "elliptical/ops/shape_text_impl.h"

namespace elliptical::ops {
namespace {

void check_residual_norm(const at::Tensor& x,
                         const at::Tensor& residual,
                         const std::optional<at::Tensor>& factors,
                         const at::Tensor& weight,
                         const at::Tensor& norm_bias,
                         double eps) {
  constexpr const char* op = "residual_norm";
  check_rows(op, x);
  check_like(op, "residual", residual, "x", x);
  TORCH_CHECK_VALUE(residual.sizes() == x.sizes(), op, ": residual must have x's shape ",
                    shape_text(x), ", got ", shape_text(residual));
  if (factors) {
    check_like(op, "factors", *factors, "x", x);
    TORCH_CHECK_VALUE(factors->dim() == 1 && factors->size(0) == x.size(0), op,
                      ": factors must be (B) = (", x.size(0), "), got ", shape_text(*factors));
    TORCH_CHECK_VALUE(!factors->requires_grad(), op,
                      ": factors must not require grad (they get no gradient)");
  }
  check_row(op, "weight", weight, x);
  check_row(op, "norm_bias", norm_bias, x);
  TORCH_CHECK_VALUE(std::isfinite(eps) && eps >= 0.0, op, ": eps must be finite and >= 0, got ",
                    eps);
}

void check_gelu_feed_forward(const at::Tensor& x,
                             const at::Tensor& up,
                             const at::Tensor& up_bias,
                             const at::Tensor& down,
                             const at::Tensor& down_bias) {
  constexpr const char* op = "gelu_feed_forward";
  check_feed_forward_maps(op, x, up, up_bias, down);
  check_row(op, "down_bias", down_bias, x);
}

/// For products that pack their weights.
bool has_enough_rows(const at::Tensor& x) {
  return x.size(-1) > 0 && x.numel() >= kFewestRows * x.size(-1);
}

}  // namespace

at::Tensor per_sample(const at::Tensor& factors, const at::Tensor& x) {
  std::vector<int64_t> sizes(static_cast<size_t>(x.dim()), 1);
  sizes[0] = x.size(0);
  return factors.view(sizes);
}

NormedSum residual_norm(const at::Tensor& x,
                        const at::Tensor& residual,
                        const std::optional<at::Tensor>& factors,
                        const at::Tensor& weight,
                        const at::Tensor& norm_bias,
                        double eps) {
  check_residual_norm(x, residual, factors, weight, norm_bias, eps);
  return fused_layer_applies(x)
             ? residual_norm_fused(x, residual, factors, weight, norm_bias, eps)
             : residual_norm_composite(x, residual, factors, weight, norm_bias, eps);
}

NormedSum residual_norm_composite(const at::Tensor& x,
                                  const at::Tensor& residual,
                                  const std::optional<at::Tensor>& factors,
                                  const at::Tensor& weight,
                                  const at::Tensor& norm_bias,
                                  double eps) {
  const at::Tensor sum = residual + (factors ? x * per_sample(*factors, x) : x);
  return {sum, at::layer_norm(sum, {sum.size(-1)}, weight, norm_bias, eps)};
}

at::Tensor gelu_feed_forward(const at::Tensor& x,
                             const at::Tensor& up,
                             const at::Tensor& up_bias,
                             const at::Tensor& down,
                             const at::Tensor& down_bias) {
  check_gelu_feed_forward(x, up, up_bias, down, down_bias);
  return fused_layer_applies(x) && has_enough_rows(x)
             ? gelu_feed_forward_fused(x, up, up_bias, down, down_bias)
             : gelu_feed_forward_composite(x, up, up_bias, down, down_bias);
}

at::Tensor gelu_feed_forward_composite(const at::Tensor& x,
                                       const at::Tensor& up,
                                       const at::Tensor& up_bias,
                                       const at::Tensor& down,
                                       const at::Tensor& down_bias) {
  return at::linear(at::gelu(at::linear(x, up, up_bias)), down, down_bias);
}

NormedSum normed_feed_forward(const at::Tensor& x,
                              const at::Tensor& residual,
                              const NormWeights& before,
                              const GeluFeedForwardWeights& weights,
                              const NormWeights& after) {
  const auto& [up, up_bias, down, down_bias] = weights;
  check_residual_norm(x, residual, {}, before.weight, before.bias, before.eps);
  check_residual_norm(x, residual, {}, after.weight, after.bias, after.eps);
  check_gelu_feed_forward(x, up, up_bias, down, down_bias);
  const bool needs_gradient =
      any_requires_grad({&x, &residual, &before.weight, &before.bias, &up, &up_bias, &down,
                         &down_bias, &after.weight, &after.bias});
  if (fused_layer_applies(x) && has_enough_rows(x) && !needs_gradient) {
    return normed_feed_forward_fused(x, residual, before, weights, after);
  }
  const NormedSum middle = residual_norm(x, residual, {}, before.weight, before.bias, before.eps);
  return residual_norm(gelu_feed_forward(middle.normed, up, up_bias, down, down_bias), middle.sum,
                       {}, after.weight, after.bias, after.eps);
}

}  // namespace elliptical::ops
