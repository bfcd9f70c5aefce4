// SPDX-License-Identifier: MIT
//
// The feed-forward layer of vision transformers: W2 gelu(W1 x + b1) + b2 with the exact GELU,
// gelu(x) = x (1 + erf(x / sqrt(2))) / 2.
#pragma once

#include "elliptical/nn/feedforward/channel_mixer.h"
#include "elliptical/nn/linear.h"

namespace elliptical::nn {

class GeluMlp : public ChannelMixer {
 public:
  GeluMlp(int64_t dim, int64_t hidden_dim);

  at::Tensor forward(const at::Tensor& x, const Pass& pass) override;
  std::optional<ops::NormedSum> forward_between(const at::Tensor& x,
                                                const at::Tensor& mixed,
                                                const Norm& before,
                                                const Norm& after) override;

 private:
  std::shared_ptr<Linear> fc1_, fc2_;
};

}  // namespace elliptical::nn
