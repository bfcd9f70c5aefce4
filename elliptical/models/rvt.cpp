// SPDX-License-Identifier: MIT
#include "elliptical/models/rvt.h"

#include <torch/torch.h>

#include <algorithm>
#include <numeric>

#include "elliptical/base/errors.h"
#include "elliptical/base/option_limits.h"
#include "elliptical/nn/attention/rvt.h"
#include "elliptical/nn/block_stack.h"
#include "elliptical/nn/feedforward/conv_mlp.h"
#include "elliptical/nn/feedforward/gelu_mlp.h"

namespace elliptical::models {
namespace {

constexpr int64_t kStemChannels = 32;
constexpr int64_t kPublishedPatch = 16, kSmallPatch = 4;

/// Tokens per side behind the stem.
int64_t stem_side(const RvtOptions& options) {
  const int64_t image_size = options.image_size;
  if (options.patch_size == kSmallPatch) return image_size / kSmallPatch;
  const int64_t wide = (image_size + 4 - 7) / 2 + 1, pooled = (wide + 2 - 3) / 2 + 1;
  return image_size < 3 ? 0 : pooled / 4;
}

/// Tokens per side behind a convolution 3 x 3 with stride 2 and padding 1.
int64_t halved(int64_t side) { return (side - 1) / 2 + 1; }

/// The attention of a stage that `num_before` blocks stand in front of: gates are counted over all
/// stages, layers are numbered in their own.
ChosenOptions stage_attention(const RvtOptions& options, int64_t num_before) {
  ChosenOptions chosen = options.attention;
  if (auto* gates = dynamic_cast<nn::RvtAttentionOptions*>(&chosen.options())) {
    if (gates->gated_layers) {
      gates->gated_layers = std::max<int64_t>(0, *gates->gated_layers - num_before);
    }
  }
  return chosen;
}

void check(const RvtOptions& options) {
  const size_t stages = options.dims.size();
  if (stages == 0 || options.num_layers.size() != stages || options.num_heads.size() != stages) {
    throw ConfigError(
        "model: dims, num_layers and num_heads must have one number for each stage, got " +
        std::to_string(stages) + ", " + std::to_string(options.num_layers.size()) + " and " +
        std::to_string(options.num_heads.size()));
  }
  for (size_t s = 0; s < stages; ++s) {
    if (options.num_layers[s] < 1 || options.dims[s] < 1 || options.num_heads[s] < 1) {
      throw ConfigError("model: dims, num_layers and num_heads must be at least 1, got " +
                        std::to_string(options.dims[s]) + ", " +
                        std::to_string(options.num_layers[s]) + " and " +
                        std::to_string(options.num_heads[s]) + " in stage " + std::to_string(s));
    }
    if (s > 0 && options.dims[s] % options.dims[s - 1] != 0) {
      throw ConfigError("model: dims must grow by whole factors, got " +
                        std::to_string(options.dims[s]) + " after " +
                        std::to_string(options.dims[s - 1]));
    }
  }
  if (options.patch_size != kPublishedPatch && options.patch_size != kSmallPatch) {
    throw ConfigError("model: patch_size must be 16 or 4, got " +
                      std::to_string(options.patch_size));
  }
  if (stem_side(options) < 1) {
    throw ConfigError("model: image_size must be at least " +
                      std::to_string(options.patch_size == kSmallPatch ? 4 : 15) +
                      " for the stem, got " + std::to_string(options.image_size));
  }
}

}  // namespace

void RvtOptions::visit(FieldList& fields) {
  fields.add_choice("size",
                    {.names = {"tiny", "small", "base"},
                     .get = [this] { return size; },
                     .set = [this](const std::string& name) { use_size(name); },
                     .selects_fields = true},
                    "defaults of dims, num_layers, num_heads and conv_feedforward");
  fields.add("patch_size", patch_size,
             "16: the published stem; 4, for small pictures: one that neither strides nor pools "
             "before it cuts patches",
             between(1, kMostSide));
  fields.add("dims", dims, "width of the tokens in each stage", between(1, kMostWidth));
  fields.add("num_layers", num_layers, "blocks in each stage", between(1, kMostLayers));
  fields.add("num_heads", num_heads, "heads per layer in each stage", between(1, kMostHeads));
  fields.add("feedforward_ratio", feedforward_ratio, "width inside a feed-forward layer / dim",
             above(0, kMostRatio));
  fields.add("conv_feedforward", conv_feedforward,
             "feed-forward layers with a depthwise convolution and batch norms");
  visit_common(fields,
               "probability to leave out a branch, in training, times block number / blocks");
}

std::unique_ptr<Options> RvtOptions::clone() const { return std::make_unique<RvtOptions>(*this); }

void RvtOptions::use_size(const std::string& name) {
  const bool is_tiny = name == "tiny", is_base = name == "base";
  size = name;
  dims = is_tiny ? std::vector<int64_t>{192, 384} : std::vector<int64_t>{is_base ? 768 : 384};
  num_layers = is_tiny ? std::vector<int64_t>{10, 2} : std::vector<int64_t>{12};
  num_heads = is_tiny ? std::vector<int64_t>{6, 12} : std::vector<int64_t>{is_base ? 12 : 6};
  conv_feedforward = !is_base;
}

void RvtOptions::shrink() {
  image_size = 32;
  patch_size = kSmallPatch;
  dims = {16, 32};
  num_layers = {1, 1};
  num_heads = {2, 4};
}

std::vector<TokenStage> RvtOptions::stages() const {
  std::vector<TokenStage> result;
  int64_t side = stem_side(*this);
  for (size_t s = 0; s < std::min(dims.size(), num_layers.size()); ++s) {
    if (s > 0) side = halved(side);
    const nn::FeedForwardShape shape{.dim = dims[s],
                                     .hidden_dim = hidden_dim(dims[s], feedforward_ratio),
                                     .num_layers = num_layers[s]};
    result.push_back({.prefix = "transformers." + std::to_string(s) + ".",
                      .num_tokens = side * side,
                      .dim = dims[s],
                      .num_layers = num_layers[s],
                      .feed_forward = nn::sum_of_layers(
                          shape, conv_feedforward ? nn::ConvMlp::cost : nn::mlp_cost)});
  }
  return result;
}

Rvt::Rvt(const RvtOptions& chosen, int64_t num_classes)
    : ImageModel(num_classes), options_(chosen) {
  check(options_);
  using ConvolutionOptions = nn::Convolution::Options;
  const auto convolution = [](int64_t in, int64_t out, int64_t kernel, ConvolutionOptions options) {
    return std::make_shared<nn::Convolution>(in, out, kernel, options);
  };
  auto patch_embed = register_module("patch_embed", std::make_shared<torch::nn::Module>());
  auto proj = patch_embed->register_module("proj", std::make_shared<torch::nn::Module>());
  const bool is_small = options_.patch_size == kSmallPatch;
  stem_wide_ = proj->register_module(
      "0", convolution(3, kStemChannels, 7,
                       is_small ? ConvolutionOptions{.stride = 1, .padding = 3}
                                : ConvolutionOptions{.stride = 2, .padding = 2}));
  stem_norm_ = proj->register_module("1", std::make_shared<nn::BatchNorm>(kStemChannels));
  stem_patches_ = proj->register_module(
      "3", convolution(kStemChannels, options_.dims.front(), 4, {.stride = 4}));

  torch::nn::ModuleList transformers = register_module("transformers", torch::nn::ModuleList());
  torch::nn::ModuleList pools = register_module("pools", torch::nn::ModuleList());
  const int64_t num_blocks =
      std::accumulate(options_.num_layers.begin(), options_.num_layers.end(), int64_t{0});
  int64_t side = stem_side(options_), block = 0;
  for (size_t s = 0; s < options_.dims.size(); ++s) {
    const int64_t C = options_.dims[s], L = options_.num_layers[s];
    if (s > 0) {
      const int64_t before = options_.dims[s - 1];
      auto pool = std::make_shared<torch::nn::Module>();
      pools_.push_back(pool->register_module(
          "conv", convolution(before, C, 3, {.stride = 2, .padding = 1, .groups = before})));
      pools->push_back(pool);
      side = halved(side);
    }
    auto stage = std::make_shared<torch::nn::Module>();
    const ChosenOptions attention = stage_attention(options_, block);
    stages_.push_back(nn::make_blocks<nn::PreNormBlock>(
        *stage, "blocks",
        {.attention = attention,
         .attention_shape = attention_shape(C, options_.num_heads[s], L, side * side),
         .make_feed_forward =
             [&](const nn::FeedForwardShape& shape) -> std::shared_ptr<nn::FeedForward> {
           if (!options_.conv_feedforward) {
             return std::make_shared<nn::GeluMlp>(C, shape.hidden_dim);
           }
           return std::make_shared<nn::ConvMlp>(C, shape.hidden_dim, side);
         },
         .feed_forward_shape = {.hidden_dim = hidden_dim(C, options_.feedforward_ratio)}},
        [&](int64_t, auto of_tokens, auto mlp) {
          const double depth = static_cast<double>(block++) / static_cast<double>(num_blocks);
          return std::make_shared<nn::PreNormBlock>(
              of_tokens, mlp, C,
              nn::PreNormBlock::Options{.drop_path = options_.drop_path * depth});
        }));
    transformers->push_back(stage);
  }
  norm_ =
      register_module("norm", std::make_shared<nn::Norm>(options_.dims.back(), nn::kPreNormEps));
  head_ = register_module("head",
                          std::make_shared<nn::Linear>(options_.dims.back(), num_classes, true));
}

at::Tensor Rvt::stem(const at::Tensor& pixels, bool training) const {
  at::Tensor wide = stem_norm_->forward(stem_wide_->forward(pixels), training);
  if (options_.patch_size == kPublishedPatch) {
    wide = at::max_pool2d(wide, /*kernel_size=*/3, /*stride=*/2, /*padding=*/1);
  }
  return stem_patches_->forward(wide);
}

/// Tokens behind the blocks of the last stage.
at::Tensor Rvt::patches(const at::Tensor& pixels, nn::Pass& pass) {
  at::Tensor map = stem(pixels, pass.training), tokens;
  for (size_t s = 0; s < stages_.size(); ++s) {
    if (s > 0) map = pools_[s - 1]->forward(nn::map_of_tokens(tokens, map.size(2)));
    tokens = nn::run_blocks(stages_[s], nn::tokens_of_map(map), nullptr, pass).x;
  }
  return tokens;
}

at::Tensor Rvt::run(const at::Tensor& pixels, nn::Pass& pass) {
  return head_->forward(norm_->forward(patches(pixels, pass).mean(1)));
}

at::Tensor Rvt::run_features(const at::Tensor& pixels, nn::Pass& pass) {
  return norm_->forward(patches(pixels, pass));
}

std::map<std::string, LabelValue> Rvt::own_labels() const { return {{"size", options_.size}}; }

}  // namespace elliptical::models
