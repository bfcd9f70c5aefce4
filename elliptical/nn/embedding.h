// SPDX-License-Identifier: MIT
//
// Tokens to vectors: drop(sqrt(C) table[token] + position). The table is the output's weight too:
// its gradient here is sparse, to be added into the dense one from there.
#pragma once

#include <torch/nn/module.h>

#include "elliptical/ops/dropout.h"

namespace elliptical::nn {

class TokenEmbedding : public torch::nn::Module {
 public:
  TokenEmbedding(int64_t vocabulary_size, int64_t dim);

  /// tokens (B, N) int64, positions (N, C) -> (B, N, C).
  at::Tensor forward(const at::Tensor& tokens,
                     const at::Tensor& positions,
                     ops::ElementDropout dropout) const;

  at::Tensor weight;  ///< (V, C)
};

}  // namespace elliptical::nn
