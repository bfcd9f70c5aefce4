// SPDX-License-Identifier: MIT
#include "elliptical/models/fan.h"

#include <torch/torch.h>

#include <array>
#include <bit>
#include <cmath>
#include <numbers>

#include "elliptical/base/errors.h"
#include "elliptical/base/option_limits.h"
#include "elliptical/nn/block_stack.h"
#include "elliptical/nn/feedforward/channel_attention.h"
#include "elliptical/nn/feedforward/gelu_mlp.h"
#include "elliptical/nn/initialize.h"

namespace elliptical::models {
namespace {

constexpr int64_t kCodeChannels = 32;  // of each coordinate
constexpr int64_t kNumClassBlocks = 2;

struct FanSize {
  const char* name;
  int64_t dim, num_layers, num_heads;
};
constexpr std::array kFanSizes = {FanSize{"tiny", 192, 12, 4}, FanSize{"small", 384, 12, 8},
                                  FanSize{"base", 448, 18, 8}, FanSize{"large", 480, 24, 10}};

/// Channels behind each convolution of the stem: doubled up to C, but with patches of 4 the
/// published stem goes from C / 4 to C at once.
std::vector<int64_t> stem_channels(const FanOptions& options) {
  const int64_t C = options.dim;
  if (options.patch_size == 4) return {C / 4, C};
  std::vector<int64_t> channels;
  for (int64_t P = options.patch_size; P > 1; P /= 2) channels.push_back(C * 2 / P);
  return channels;
}

void check(const FanOptions& options) {
  const int64_t P = options.patch_size;
  if (!std::has_single_bit(static_cast<uint64_t>(P))) {
    throw ConfigError("model: patch_size must be a power of 2 for the stem, got " +
                      std::to_string(P));
  }
  check_patches(options.image_size, P);
  const int64_t divisor = P == 4 ? 4 : P / 2;  // of stem_channels
  if (options.dim % divisor != 0) {
    throw ConfigError("model: dim must be a multiple of " + std::to_string(divisor) +
                      " for the stem of patches of " + std::to_string(P) + ", got " +
                      std::to_string(options.dim));
  }
}

/// Sines and cosines of the coordinates, which run from 2 pi / side to 2 pi: (1, side^2, 64), y
/// first. Channels 2j and 2j + 1 are sine and cosine of coordinate / 10000^(2j / 32).
at::Tensor position_code(int64_t side) {
  const at::Tensor coordinate = torch::arange(1, side + 1, torch::kDouble) *
                                (2.0 * std::numbers::pi / (static_cast<double>(side) + 1e-6));
  const at::Tensor exponent =
      torch::arange(0, kCodeChannels, 2, torch::kDouble) / static_cast<double>(kCodeChannels);
  const at::Tensor angle =
      coordinate.unsqueeze(1) * torch::pow(torch::full({}, 1e4, torch::kDouble), -exponent);
  const at::Tensor code = at::stack({angle.sin(), angle.cos()}, -1).flatten(1);  // (side, 32)
  const at::Tensor y = code.unsqueeze(1).expand({side, side, kCodeChannels});
  const at::Tensor x = code.unsqueeze(0).expand({side, side, kCodeChannels});
  return at::cat({y, x}, -1).view({1, side * side, 2 * kCodeChannels});
}

}  // namespace

void FanOptions::visit(FieldList& fields) {
  std::vector<std::string> names;
  for (const FanSize& known : kFanSizes) names.emplace_back(known.name);
  fields.add_choice("size",
                    {.names = std::move(names),
                     .get = [this] { return size; },
                     .set = [this](const std::string& name) { use_size(name); },
                     .selects_fields = true},
                    "defaults of dim, num_layers and num_heads: those of FAN-ViT");
  fields.add("patch_size", patch_size,
             "height and width of the pixels that one token stands for: 2 to the number of "
             "convolutions in the stem",
             between(2, kMostSide));
  fields.add("dim", dim,
             "width C of the tokens, a multiple of patch_size / 2, of 4 at patch_size 4",
             between(1, kMostWidth));
  fields.add("num_layers", num_layers, "blocks", between(1, kMostLayers));
  fields.add("num_heads", num_heads, "heads per layer; they share the width",
             between(1, kMostHeads));
  fields.add("feedforward_ratio", feedforward_ratio, "width inside a feed-forward layer / dim",
             above(0, kMostRatio));
  visit_common(fields, "probability to leave out a branch, in training, the same in all blocks");
}

std::unique_ptr<Options> FanOptions::clone() const { return std::make_unique<FanOptions>(*this); }

void FanOptions::use_size(const std::string& name) {
  for (const FanSize& known : kFanSizes) {
    if (known.name != name) continue;
    size = name;
    dim = known.dim;
    num_layers = known.num_layers;
    num_heads = known.num_heads;
  }
}

void FanOptions::shrink() {
  image_size = 32;
  patch_size = 8;
  dim = 32;
  num_layers = 2;
  num_heads = 2;
}

std::vector<TokenStage> FanOptions::stages() const {
  const int64_t side = image_size / patch_size;
  nn::FeedForwardShape of_class_blocks = feed_forward_shape();
  of_class_blocks.num_layers = kNumClassBlocks;
  return {{.prefix = "blocks.",
           .num_tokens = side * side,
           .dim = dim,
           .num_layers = num_layers,
           .feed_forward = nn::sum_of_layers(feed_forward_shape(), nn::ChannelAttention::cost)},
          {.prefix = "cls_attn_blocks.",
           .num_tokens = 1,
           .dim = dim,
           .num_layers = kNumClassBlocks,
           .feed_forward = nn::sum_of_layers(of_class_blocks, nn::mlp_cost)}};
}

nn::FeedForwardShape FanOptions::feed_forward_shape() const {
  return {.dim = dim, .hidden_dim = hidden_dim(dim, feedforward_ratio), .num_layers = num_layers};
}

Fan::Fan(const FanOptions& chosen, int64_t num_classes)
    : ImageModel(num_classes), options_(chosen), side_(chosen.image_size / chosen.patch_size) {
  check(options_);
  const int64_t C = options_.dim;
  auto patch_embed = register_module("patch_embed", std::make_shared<torch::nn::Module>());
  auto proj = patch_embed->register_module("proj", std::make_shared<torch::nn::Module>());
  int64_t channels = 3;
  for (const int64_t wider : stem_channels(options_)) {  // 0, 2, 4, 6: activations between count
    auto pair = proj->register_module(std::to_string(2 * stem_.size()),
                                      std::make_shared<torch::nn::Module>());
    stem_.push_back(pair->register_module(
        "0", std::make_shared<nn::Convolution>(
                 channels, wider, 3,
                 nn::Convolution::Options{.stride = 2, .padding = 1, .with_bias = false})));
    stem_norms_.push_back(pair->register_module("1", std::make_shared<nn::BatchNorm>(wider)));
    channels = wider;
  }
  auto pos_embed = register_module("pos_embed", std::make_shared<torch::nn::Module>());
  position_map_ = pos_embed->register_module(
      "token_projection",
      std::make_shared<nn::Convolution>(2 * kCodeChannels, C, 1, nn::Convolution::Options{}));
  position_code_ = position_code(side_);

  blocks_ = nn::make_blocks<nn::PreNormBlock>(
      *this, "blocks",
      {.attention = options_.attention,
       .attention_shape = attention_shape(C, options_.num_heads, options_.num_layers, num_tokens()),
       .make_feed_forward =
           [&](const nn::FeedForwardShape& shape) {
             return std::make_shared<nn::ChannelAttention>(C, options_.num_heads, shape.hidden_dim,
                                                           side_);
           },
       .feed_forward_shape = options_.feed_forward_shape()},
      [&](int64_t, auto attention, auto mlp) {
        return std::make_shared<nn::PreNormBlock>(
            attention, mlp, C,
            nn::PreNormBlock::Options{.drop_path = options_.drop_path, .scale_branches = true});
      });
  cls_token_ = register_parameter("cls_token", torch::empty({1, 1, C}));
  torch::nn::ModuleList class_list = register_module("cls_attn_blocks", torch::nn::ModuleList());
  for (int64_t i = 0; i < kNumClassBlocks; ++i) {
    class_blocks_.push_back(std::make_shared<nn::ClassBlock>(
        C, options_.num_heads,
        std::make_shared<nn::GeluMlp>(C, options_.feed_forward_shape().hidden_dim)));
    class_list->push_back(class_blocks_.back());
  }
  norm_ = register_module("norm", std::make_shared<nn::Norm>(C, nn::kPreNormEps));
  head_ = register_module("head", std::make_shared<nn::Linear>(C, num_classes, true));
}

at::Tensor Fan::stem(const at::Tensor& pixels, bool training) const {
  at::Tensor map = pixels;
  for (size_t i = 0; i < stem_.size(); ++i) {
    if (i > 0) map = at::gelu(map);
    map = stem_norms_[i]->forward(stem_[i]->forward(map), training);
  }
  return nn::tokens_of_map(map);
}

/// Patches behind the blocks, before a class token looks at them.
at::Tensor Fan::patches(const at::Tensor& pixels, nn::Pass& pass) {
  const at::Tensor x = stem(pixels, pass.training) +
                       position_map_->on_tokens(position_code_.to(pixels.scalar_type()));
  return nn::run_blocks(blocks_, x, nullptr, pass).x;
}

at::Tensor Fan::run(const at::Tensor& pixels, nn::Pass& pass) {
  at::Tensor x =
      at::cat({cls_token_.expand({pixels.size(0), 1, options_.dim}), patches(pixels, pass)}, 1);
  for (const auto& block : class_blocks_) x = block->forward(x, pass);
  return head_->forward(norm_->forward(x.select(1, 0)));
}

at::Tensor Fan::run_features(const at::Tensor& pixels, nn::Pass& pass) {
  return norm_->forward(patches(pixels, pass));
}

std::map<std::string, LabelValue> Fan::own_labels() const {
  return {{"num_heads", options_.num_heads}, {"size", options_.size}};
}

bool Fan::initialize_parameter(const std::string& name, at::Tensor& parameter, RandomKey key) {
  if (name.find(".dwconv.conv") == std::string::npos) return false;
  if (parameter.dim() == 4) {
    nn::fill_normal(parameter, 0.0, std::sqrt(2.0 / 9.0), key);
  } else {
    parameter.zero_();
  }
  return true;
}

}  // namespace elliptical::models
