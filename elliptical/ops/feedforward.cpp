// SPDX-License-Identifier: MIT
#include "elliptical/ops/feedforward.h"

#include "elliptical/ops/feedforward_impl.h"

namespace elliptical::ops {

at::Tensor bias_relu_dropout(const at::Tensor& x, const at::Tensor& bias, ElementDropout dropout) {
  check_bias_relu_dropout(x, bias, dropout);
  return bias_relu_dropout_composite(x, bias, dropout);
}

at::Tensor residual_dropout_norm(const at::Tensor& x,
                                 const std::optional<at::Tensor>& bias,
                                 const at::Tensor& residual,
                                 const at::Tensor& weight,
                                 const at::Tensor& norm_bias,
                                 double eps,
                                 ElementDropout dropout) {
  check_residual_dropout_norm(x, bias, residual, weight, norm_bias, eps, dropout);
  return residual_dropout_norm_composite(x, bias, residual, weight, norm_bias, eps, dropout);
}

at::Tensor embed(const at::Tensor& table,
                 const at::Tensor& tokens,
                 const at::Tensor& positions,
                 double scale,
                 ElementDropout dropout) {
  check_embed(table, tokens, positions, scale, dropout);
  return embed_composite(table, tokens, positions, scale, dropout);
}

at::Tensor element_dropout(const at::Tensor& x, ElementDropout dropout) {
  check_element_dropout(x, dropout);
  return element_dropout_composite(x, dropout);
}

}  // namespace elliptical::ops
