// SPDX-License-Identifier: MIT
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include "elliptical/ops/dropout_impl.h"
#include "elliptical/ops/embedding.h"

namespace elliptical::ops {

at::Tensor embed_composite(const at::Tensor& table,
                           const at::Tensor& tokens,
                           const at::Tensor& positions,
                           const EmbedOptions& options) {
  return drop(at::embedding(table, tokens) * options.scale + positions, options.dropout);
}

}  // namespace elliptical::ops
