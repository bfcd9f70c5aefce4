// SPDX-License-Identifier: MIT
#include "elliptical/ops/feed_forward.h"

#include "elliptical/ops/feed_forward_impl.h"
#include "elliptical/ops/fused_function_impl.h"

namespace elliptical::ops {

at::Tensor bias_relu_dropout(const at::Tensor& x, const at::Tensor& bias, ElementDropout dropout) {
  check_bias_relu_dropout(x, bias, dropout);
  return fused_layer_applies(x) ? bias_relu_dropout_fused(x, bias, dropout)
                                : bias_relu_dropout_composite(x, bias, dropout);
}

at::Tensor residual_dropout_norm(const at::Tensor& x,
                                 const std::optional<at::Tensor>& bias,
                                 const at::Tensor& residual,
                                 const at::Tensor& weight,
                                 const at::Tensor& norm_bias,
                                 double eps,
                                 ElementDropout dropout) {
  check_residual_dropout_norm(x, bias, residual, weight, norm_bias, eps, dropout);
  return fused_layer_applies(x)
             ? residual_dropout_norm_fused(x, bias, residual, weight, norm_bias, eps, dropout)
             : residual_dropout_norm_composite(x, bias, residual, weight, norm_bias, eps, dropout);
}

at::Tensor feed_forward(const at::Tensor& x,
                        const at::Tensor& up,
                        const at::Tensor& up_bias,
                        const at::Tensor& down,
                        ElementDropout dropout) {
  check_feed_forward(x, up, up_bias, down, dropout);
  return fused_layer_applies(x) ? feed_forward_fused(x, up, up_bias, down, dropout)
                                : feed_forward_composite(x, up, up_bias, down, dropout);
}

at::Tensor embed(const at::Tensor& table,
                 const at::Tensor& tokens,
                 const at::Tensor& positions,
                 double scale,
                 ElementDropout dropout,
                 bool sparse_gradient) {
  check_embed(table, tokens, positions, scale, dropout);
  return fused_layer_applies(table)
             ? embed_fused(table, tokens, positions, scale, dropout, sparse_gradient)
             : embed_composite(table, tokens, positions, scale, dropout);
}

at::Tensor element_dropout(const at::Tensor& x, ElementDropout dropout) {
  check_element_dropout(x, dropout);
  return fused_layer_applies(x) ? element_dropout_fused(x, dropout)
                                : element_dropout_composite(x, dropout);
}

}  // namespace elliptical::ops
