// SPDX-License-Identifier: MIT
#include "elliptical/ops/residual_norm.h"

#include <c10/util/Exception.h>

#include <cmath>

#include "elliptical/ops/dropout_impl.h"
#include "elliptical/ops/fused_layer_impl.h"
#include "elliptical/ops/layer_checks_impl.h"
#include "elliptical/ops/residual_norm_impl.h"
#include "elliptical/ops/shape_text_impl.h"

namespace elliptical::ops {
namespace {

void check_sum(const char* op, const at::Tensor& x, const at::Tensor& residual) {
  check_rows(op, x);
  check_like(op, "residual", residual, "x", x);
  TORCH_CHECK_VALUE(residual.sizes() == x.sizes(), op, ": residual must have x's shape ",
                    shape_text(x), ", got ", shape_text(residual));
}

void check_norm(const char* op, const at::Tensor& x, const NormWeights& norm) {
  check_row(op, "weight", norm.weight, x);
  check_row(op, "norm_bias", norm.bias, x);
  TORCH_CHECK_VALUE(std::isfinite(norm.eps) && norm.eps >= 0.0, op,
                    ": eps must be finite and >= 0, got ", norm.eps);
}

}  // namespace

void check_residual_norm(const at::Tensor& x,
                         const at::Tensor& residual,
                         const std::optional<at::Tensor>& factors,
                         const NormWeights& norm) {
  constexpr const char* op = "residual_norm";
  check_sum(op, x, residual);
  if (factors) {
    check_like(op, "factors", *factors, "x", x);
    TORCH_CHECK_VALUE(factors->dim() == 1 && factors->size(0) == x.size(0), op,
                      ": factors must be (B) = (", x.size(0), "), got ", shape_text(*factors));
    TORCH_CHECK_VALUE(!factors->requires_grad(), op,
                      ": factors must not require grad (they get no gradient)");
  }
  check_norm(op, x, norm);
}

at::Tensor residual_dropout_norm(const at::Tensor& x,
                                 const std::optional<at::Tensor>& bias,
                                 const at::Tensor& residual,
                                 const NormWeights& norm,
                                 ElementDropout dropout) {
  constexpr const char* op = "residual_dropout_norm";
  check_sum(op, x, residual);
  if (bias) check_row(op, "bias", *bias, x);
  check_norm(op, x, norm);
  check_dropout(op, dropout);
  return fused_layer_applies(x) ? residual_dropout_norm_fused(x, bias, residual, norm, dropout)
                                : residual_dropout_norm_composite(x, bias, residual, norm, dropout);
}

NormedSum residual_norm(const at::Tensor& x,
                        const at::Tensor& residual,
                        const std::optional<at::Tensor>& factors,
                        const NormWeights& norm) {
  check_residual_norm(x, residual, factors, norm);
  return fused_layer_applies(x) ? residual_norm_fused(x, residual, factors, norm)
                                : residual_norm_composite(x, residual, factors, norm);
}

}  // namespace elliptical::ops
