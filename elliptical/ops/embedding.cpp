// SPDX-License-Identifier: MIT
#include "elliptical/ops/embedding.h"

#include <c10/util/Exception.h>

#include <cmath>

#include "elliptical/ops/dropout_impl.h"
#include "elliptical/ops/embedding_impl.h"
#include "elliptical/ops/fused_layer_impl.h"
#include "elliptical/ops/layer_checks_impl.h"
#include "elliptical/ops/shape_text_impl.h"

namespace elliptical::ops {
namespace {

void check_embed(const at::Tensor& table,
                 const at::Tensor& tokens,
                 const at::Tensor& positions,
                 const EmbedOptions& options) {
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
  TORCH_CHECK_VALUE(std::isfinite(options.scale), "embed: scale must be finite, got ",
                    options.scale);
  check_dropout("embed", options.dropout);
  check_indices(tokens, table.size(0), "embed: tokens", "V");
}

}  // namespace

at::Tensor embed(const at::Tensor& table,
                 const at::Tensor& tokens,
                 const at::Tensor& positions,
                 const EmbedOptions& options) {
  check_embed(table, tokens, positions, options);
  return fused_layer_applies(table) ? embed_fused(table, tokens, positions, options)
                                    : embed_composite(table, tokens, positions, options);
}

}  // namespace elliptical::ops
