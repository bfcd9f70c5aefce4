// SPDX-License-Identifier: MIT
#include "elliptical/ops/feed_forward.h"

#include <c10/util/Exception.h>

#include "elliptical/ops/dropout_impl.h"
#include "elliptical/ops/feed_forward_impl.h"
#include "elliptical/ops/fused_layer_impl.h"
#include "elliptical/ops/layer_checks_impl.h"
#include "elliptical/ops/shape_text_impl.h"

namespace elliptical::ops {

void check_feed_forward_maps(const char* op, const at::Tensor& x, const FeedForwardWeights& maps) {
  const auto& [up, up_bias, down] = maps;
  check_rows(op, x);
  check_like(op, "up", up, "x", x);
  check_like(op, "up_bias", up_bias, "x", x);
  check_like(op, "down", down, "x", x);
  const int64_t C = x.size(-1);
  TORCH_CHECK_VALUE(up.dim() == 2 && up.size(1) == C, op, ": up must be (F, C) = (F, ", C,
                    "), got ", shape_text(up));
  const int64_t F = up.size(0);
  TORCH_CHECK_VALUE(up_bias.dim() == 1 && up_bias.size(0) == F, op, ": up_bias must be (F) = (", F,
                    "), got ", shape_text(up_bias));
  TORCH_CHECK_VALUE(down.dim() == 2 && down.size(0) == C && down.size(1) == F, op,
                    ": down must be (C, F) = (", C, ", ", F, "), got ", shape_text(down));
}

at::Tensor bias_relu_dropout(const at::Tensor& x, const at::Tensor& bias, ElementDropout dropout) {
  check_rows("bias_relu_dropout", x);
  check_row("bias_relu_dropout", "bias", bias, x);
  check_dropout("bias_relu_dropout", dropout);
  return fused_layer_applies(x) ? bias_relu_dropout_fused(x, bias, dropout)
                                : bias_relu_dropout_composite(x, bias, dropout);
}

at::Tensor feed_forward(const at::Tensor& x,
                        const FeedForwardWeights& weights,
                        ElementDropout dropout) {
  check_feed_forward_maps("feed_forward", x, weights);
  check_dropout("feed_forward", dropout);
  return fused_layer_applies(x) ? feed_forward_fused(x, weights, dropout)
                                : feed_forward_composite(x, weights, dropout);
}

}  // namespace elliptical::ops
