// SPDX-License-Identifier: MIT
#include "elliptical/nn/feedforward/channel_mixer.h"

namespace elliptical::nn {

ops::NormedSum ChannelMixer::forward_between(const at::Tensor& x,
                                             const at::Tensor& mixed,
                                             const Norm& before,
                                             const Norm& after,
                                             const AttentionContext& context) {
  const ops::NormedSum middle =
      ops::residual_norm(mixed, x, {}, before.weight, before.bias, before.eps);
  return ops::residual_norm(forward(middle.normed, context), middle.sum, {}, after.weight,
                            after.bias, after.eps);
}

}  // namespace elliptical::nn
