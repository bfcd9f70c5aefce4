// SPDX-License-Identifier: MIT
//
// What stands in the second branch of a pre-norm block: it mixes the channels of each token, and in
// some models neighbouring tokens too.
#pragma once

#include "elliptical/nn/attention/attention.h"
#include "elliptical/nn/norm.h"
#include "elliptical/ops/residual_norm.h"

namespace elliptical::nn {

class ChannelMixer : public torch::nn::Module {
 public:
  /// x (B, N, C), normed, -> (B, N, C), before the residual connection.
  virtual at::Tensor forward(const at::Tensor& x, const AttentionContext& context) = 0;
  /// The branch between two norms in one pass, for mixers that can: with s = x + mixed,
  /// s + forward(norm `before` of s) and norm `after` of it.
  virtual std::optional<ops::NormedSum> forward_between(const at::Tensor& /*x*/,
                                                        const at::Tensor& /*mixed*/,
                                                        const Norm& /*before*/,
                                                        const Norm& /*after*/) {
    return std::nullopt;
  }
  /// Whether a token's result depends on that token alone.
  virtual bool is_tokenwise() const { return true; }
};

}  // namespace elliptical::nn
