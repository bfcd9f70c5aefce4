// SPDX-License-Identifier: MIT
#include "elliptical/nn/block_stack.h"

#include <torch/torch.h>

namespace elliptical::nn {

std::pair<std::shared_ptr<Attention>, std::shared_ptr<FeedForward>> StackLayers::make(
    int64_t layer) const {
  AttentionShape of_attention = attention_shape;
  of_attention.layer = layer;
  FeedForwardShape of_feed_forward = feed_forward_shape;
  of_feed_forward.dim = attention_shape.dim;
  of_feed_forward.layer = layer;
  of_feed_forward.num_layers = attention_shape.num_layers;
  return {make_attention(attention, of_attention), make_feed_forward(of_feed_forward)};
}

std::function<std::shared_ptr<FeedForward>(const FeedForwardShape&)> chosen_feed_forward(
    const ChosenOptions& chosen) {
  return [&chosen](const FeedForwardShape& shape) { return make_feed_forward(chosen, shape); };
}

}  // namespace elliptical::nn
