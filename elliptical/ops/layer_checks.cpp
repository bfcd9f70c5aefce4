// SPDX-License-Identifier: MIT
//
// Checks of the fused layers' arguments: `<op>: <argument> must <what must hold>, got <what>`.
#include <ATen/Functions.h>
#include <c10/util/Exception.h>

#include <cmath>

#include "elliptical/ops/feed_forward_impl.h"
#include "elliptical/ops/shape_text_impl.h"

namespace elliptical::ops {
namespace {

void check_dropout(const char* op, ElementDropout dropout) {
  TORCH_CHECK_VALUE(dropout.p >= 0.0 && dropout.p < 1.0, op, ": dropout.p must be in [0, 1), got ",
                    dropout.p);
}

void check_floating(const char* op, const char* name, const at::Tensor& x) {
  TORCH_CHECK_TYPE(at::isFloatingType(x.scalar_type()), op, ": ", name,
                   " must have a floating point dtype, got ", x.scalar_type());
}

}  // namespace

void check_like(const char* op,
                const char* name,
                const at::Tensor& tensor,
                const char* reference_name,
                const at::Tensor& reference) {
  TORCH_CHECK_TYPE(tensor.scalar_type() == reference.scalar_type(), op, ": ", name, " must have ",
                   reference_name, "'s dtype ", reference.scalar_type(), ", got ",
                   tensor.scalar_type());
  TORCH_CHECK_VALUE(tensor.device() == reference.device(), op, ": ", name, " must be on ",
                    reference_name, "'s device ", reference.device(), ", got ", tensor.device());
}

/// `tensor` is one row of x.
void check_row(const char* op, const char* name, const at::Tensor& tensor, const at::Tensor& x) {
  check_like(op, name, tensor, "x", x);
  TORCH_CHECK_VALUE(tensor.dim() == 1 && tensor.size(0) == x.size(-1), op, ": ", name,
                    " must be (C) = (", x.size(-1), "), got ", shape_text(tensor));
}

void check_rows(const char* op, const at::Tensor& x) {
  check_floating(op, "x", x);
  TORCH_CHECK_VALUE(x.dim() >= 1, op, ": x must be (..., C), got ", shape_text(x));
}

void check_indices(const at::Tensor& indices,
                   int64_t size,
                   std::string_view subject,
                   std::string_view size_name) {
  TORCH_CHECK_TYPE(indices.scalar_type() == at::kLong, subject, " must have dtype Long, got ",
                   indices.scalar_type());
  const at::Tensor values = indices.cpu().contiguous();
  const int64_t* index = values.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < values.numel(); ++i) {
    TORCH_CHECK_VALUE(0 <= index[i] && index[i] < size, subject, " must be in [0, ", size_name,
                      ") = [0, ", size, "), got ", index[i], " at element ", i);
  }
}

void check_bias_relu_dropout(const at::Tensor& x, const at::Tensor& bias, ElementDropout dropout) {
  check_rows("bias_relu_dropout", x);
  check_row("bias_relu_dropout", "bias", bias, x);
  check_dropout("bias_relu_dropout", dropout);
}

void check_residual_dropout_norm(const at::Tensor& x,
                                 const std::optional<at::Tensor>& bias,
                                 const at::Tensor& residual,
                                 const at::Tensor& weight,
                                 const at::Tensor& norm_bias,
                                 double eps,
                                 ElementDropout dropout) {
  constexpr const char* op = "residual_dropout_norm";
  check_rows(op, x);
  check_like(op, "residual", residual, "x", x);
  TORCH_CHECK_VALUE(residual.sizes() == x.sizes(), op, ": residual must have x's shape ",
                    shape_text(x), ", got ", shape_text(residual));
  if (bias) check_row(op, "bias", *bias, x);
  check_row(op, "weight", weight, x);
  check_row(op, "norm_bias", norm_bias, x);
  TORCH_CHECK_VALUE(std::isfinite(eps) && eps >= 0.0, op, ": eps must be finite and >= 0, got ",
                    eps);
  check_dropout(op, dropout);
}

void check_feed_forward_maps(const char* op,
                             const at::Tensor& x,
                             const at::Tensor& up,
                             const at::Tensor& up_bias,
                             const at::Tensor& down) {
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

void check_feed_forward(const at::Tensor& x,
                        const at::Tensor& up,
                        const at::Tensor& up_bias,
                        const at::Tensor& down,
                        ElementDropout dropout) {
  check_feed_forward_maps("feed_forward", x, up, up_bias, down);
  check_dropout("feed_forward", dropout);
}

void check_embed(const at::Tensor& table,
                 const at::Tensor& tokens,
                 const at::Tensor& positions,
                 double scale,
                 ElementDropout dropout) {
  check_floating("embed", "table", table);
  TORCH_CHECK_VALUE(table.dim() == 2, "embed: table must be (V, C), got ", shape_text(table));
  TORCH_CHECK_VALUE(tokens.dim() == 2, "embed: tokens must be (B, N), got ", shape_text(tokens));
  TORCH_CHECK_VALUE(tokens.device() == table.device(), "embed: tokens must be on table's device ",
                    table.device(), ", got ", tokens.device());
  check_like("embed", "positions", positions, "table", table);
  const int64_t N = tokens.size(1), C = table.size(1);
  TORCH_CHECK_VALUE(positions.dim() == 2 && positions.size(0) == N && positions.size(1) == C,
                    "embed: positions must be (N, C) = (", N, ", ", C, "), got ",
                    shape_text(positions));
  TORCH_CHECK_VALUE(!positions.requires_grad(),
                    "embed: positions must not require grad (they get no gradient)");
  TORCH_CHECK_VALUE(std::isfinite(scale), "embed: scale must be finite, got ", scale);
  check_dropout("embed", dropout);
  check_indices(tokens, table.size(0), "embed: tokens", "V");
}

void check_element_dropout(const at::Tensor& x, ElementDropout dropout) {
  check_floating("element_dropout", "x", x);
  check_dropout("element_dropout", dropout);
}

}  // namespace elliptical::ops
