// SPDX-License-Identifier: MIT
#pragma once

#include "elliptical/ops/embedding.h"

namespace elliptical::ops {

/// Checked float32 on the CPU.
at::Tensor embed_fused(const at::Tensor& table,
                       const at::Tensor& tokens,
                       const at::Tensor& positions,
                       const EmbedOptions& options);

}  // namespace elliptical::ops
