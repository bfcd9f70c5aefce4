// SPDX-License-Identifier: MIT
//
// What stands in the second branch of a pre-norm block: it mixes the channels of each token, and in
// some models neighbouring tokens too.
#pragma once

#include "elliptical/nn/attention/attention.h"

namespace elliptical::nn {

class ChannelMixer : public torch::nn::Module {
 public:
  /// x (B, N, C), normed, -> (B, N, C), before the residual connection.
  virtual at::Tensor forward(const at::Tensor& x, const AttentionContext& context) = 0;
  /// Whether a token's result depends on that token alone.
  virtual bool is_tokenwise() const { return true; }
};

}  // namespace elliptical::nn
