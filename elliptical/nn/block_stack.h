// SPDX-License-Identifier: MIT
//
// The blocks of a model, one on top of the other: each has an attention and a feed-forward layer
// that know how many there are and which of them they are in. What kind of block it is, and what is
// special about it, says whoever asks. Blocks are the modules "0", "1", .. below `name`.
#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "elliptical/nn/attention/attention.h"
#include "elliptical/nn/feedforward/feed_forward.h"

namespace elliptical::nn {

/// Of what the layers of a stack are made. Their number and width are those of `attention_shape`.
struct StackLayers {
  const ChosenOptions& attention;
  AttentionShape attention_shape;
  std::function<std::shared_ptr<FeedForward>(const FeedForwardShape&)> make_feed_forward;
  FeedForwardShape feed_forward_shape;  ///< hidden_dim and dropout

  /// Attention and feed-forward layer number `layer`.
  std::pair<std::shared_ptr<Attention>, std::shared_ptr<FeedForward>> make(int64_t layer) const;
};

/// For StackLayers: as options choose them.
std::function<std::shared_ptr<FeedForward>(const FeedForwardShape&)> chosen_feed_forward(
    const ChosenOptions& chosen);

/// make_block(layer, attention, feed-forward layer) -> shared_ptr<Block>
template <class Block, class MakeBlock>
std::vector<std::shared_ptr<Block>> make_blocks(torch::nn::Module& parent,
                                                const std::string& name,
                                                const StackLayers& layers,
                                                const MakeBlock& make_block) {
  const auto list = parent.register_module(name, std::make_shared<torch::nn::Module>());
  std::vector<std::shared_ptr<Block>> blocks;
  for (int64_t layer = 0; layer < layers.attention_shape.num_layers; ++layer) {
    auto [attention, feed_forward] = layers.make(layer);
    blocks.push_back(make_block(layer, std::move(attention), std::move(feed_forward)));
    list->register_module(std::to_string(layer), blocks.back());
  }
  return blocks;
}

}  // namespace elliptical::nn
