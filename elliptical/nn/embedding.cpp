// SPDX-License-Identifier: MIT
#include "elliptical/nn/embedding.h"

#include <torch/torch.h>

#include <cmath>

#include "elliptical/ops/embedding.h"

namespace elliptical::nn {

TokenEmbedding::TokenEmbedding(int64_t vocabulary_size, int64_t dim)
    : weight(register_parameter("weight", torch::empty({vocabulary_size, dim}))) {}

at::Tensor TokenEmbedding::forward(const at::Tensor& tokens,
                                   const at::Tensor& positions,
                                   ops::ElementDropout dropout) const {
  const double scale = std::sqrt(static_cast<double>(weight.size(1)));
  return ops::embed(weight, tokens, positions,
                    {.scale = scale, .dropout = dropout, .sparse_gradient = true});
}

}  // namespace elliptical::nn
