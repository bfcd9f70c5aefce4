// SPDX-License-Identifier: MIT
#include "elliptical/models/vit.h"

#include <torch/torch.h>

#include <algorithm>
#include <array>

#include "elliptical/base/option_limits.h"
#include "elliptical/nn/block_stack.h"

namespace elliptical::models {
namespace {

struct VitSize {
  const char* name;
  int64_t dim, num_layers, num_heads;
};
constexpr std::array kVitSizes = {VitSize{"tiny", 192, 12, 3}, VitSize{"small", 384, 12, 6},
                                  VitSize{"base", 768, 12, 12}};

}  // namespace

void VitOptions::visit(FieldList& fields) {
  std::vector<std::string> names;
  for (const VitSize& known : kVitSizes) names.emplace_back(known.name);
  fields.add_choice("size",
                    {.names = std::move(names),
                     .get = [this] { return size; },
                     .set = [this](const std::string& name) { use_size(name); },
                     .selects_fields = true},
                    "defaults of dim, num_layers and num_heads: those of DeiT");
  fields.add("patch_size", patch_size, "height and width of the pixels that one token reads",
             between(1, kMostSide));
  fields.add("dim", dim, "width C of the tokens", between(1, kMostWidth));
  fields.add("num_layers", num_layers, "blocks", between(1, kMostLayers));
  fields.add("num_heads", num_heads, "heads per layer; they share the width",
             between(1, kMostHeads));
  fields.add("feedforward_ratio", feedforward_ratio, "width inside a feed-forward layer / dim",
             above(0, kMostRatio));
  fields.add_group("feedforward", feedforward);
  fields.add("distilled", distilled, "a second token and head that learn from a teacher");
  visit_common(fields,
               "probability to leave out a branch of the last block, in training; the first one "
               "has 0, those between lie on a line");
}

std::unique_ptr<Options> VitOptions::clone() const { return std::make_unique<VitOptions>(*this); }

void VitOptions::use_size(const std::string& name) {
  for (const VitSize& known : kVitSizes) {
    if (known.name != name) continue;
    size = name;
    dim = known.dim;
    num_layers = known.num_layers;
    num_heads = known.num_heads;
  }
}

void VitOptions::shrink() {
  image_size = 32;
  patch_size = 8;
  dim = 24;
  num_layers = std::min<int64_t>(num_layers, 2);
  num_heads = std::min<int64_t>(num_heads, 6);
}

std::vector<TokenStage> VitOptions::stages() const {
  const int64_t grid = image_size / patch_size;
  return {{.prefix = "blocks.",
           .num_tokens = num_prefix_tokens() + grid * grid,
           .dim = dim,
           .num_layers = num_layers,
           .feed_forward = nn::feed_forward_cost(feedforward, feed_forward_shape())}};
}

nn::FeedForwardShape VitOptions::feed_forward_shape() const {
  return {.dim = dim, .hidden_dim = hidden_dim(dim, feedforward_ratio), .num_layers = num_layers};
}

Vit::Vit(const VitOptions& chosen, int64_t num_classes)
    : ImageModel(num_classes), options_(chosen) {
  check_patches(options_.image_size, options_.patch_size);
  const int64_t C = options_.dim, L = options_.num_layers;
  const int64_t N = num_tokens();
  cls_token_ = register_parameter("cls_token", torch::empty({1, 1, C}));
  if (options_.distilled) dist_token_ = register_parameter("dist_token", torch::empty({1, 1, C}));
  pos_embed_ = register_parameter("pos_embed", torch::empty({1, N, C}));
  patch_embed_ =
      register_module("patch_embed", std::make_shared<nn::PatchEmbed>(options_.patch_size, C));
  blocks_ = nn::make_blocks<nn::PreNormBlock>(
      *this, "blocks",
      {.attention = options_.attention,
       .attention_shape = attention_shape(C, options_.num_heads, L, N),
       .make_feed_forward = nn::chosen_feed_forward(options_.feedforward),
       .feed_forward_shape = options_.feed_forward_shape()},
      [&](int64_t layer, auto attention, auto mlp) {
        const double depth = L > 1 ? static_cast<double>(layer) / static_cast<double>(L - 1) : 0.0;
        return std::make_shared<nn::PreNormBlock>(
            attention, mlp, C, nn::PreNormBlock::Options{.drop_path = options_.drop_path * depth});
      });
  norm_ = register_module("norm", std::make_shared<nn::Norm>(C, nn::kPreNormEps));
  head_ = register_module("head", std::make_shared<nn::Linear>(C, num_classes, true));
  if (options_.distilled) {
    head_dist_ = register_module("head_dist", std::make_shared<nn::Linear>(C, num_classes, true));
  }
}

at::Tensor Vit::embed(const at::Tensor& pixels) const {
  const int64_t B = pixels.size(0), C = options_.dim;
  std::vector<at::Tensor> tokens{cls_token_.expand({B, 1, C})};
  if (dist_token_.defined()) tokens.push_back(dist_token_.expand({B, 1, C}));
  tokens.push_back(patch_embed_->forward(pixels));
  return at::cat(tokens, 1) + pos_embed_;
}

at::Tensor Vit::run(const at::Tensor& pixels, nn::Pass& pass) {
  // Nobody reads the patches behind the last attention.
  const at::Tensor tokens =
      nn::run_blocks(blocks_, embed(pixels), norm_.get(), pass, num_prefix_tokens()).normed;
  const at::Tensor logits = head_->forward(tokens.select(1, 0));
  if (!options_.distilled) return logits;
  const at::Tensor distilled = head_dist_->forward(tokens.select(1, 1));
  if (!pass.training) return (logits + distilled) / 2.0;
  pass.outputs[kSecondHead] = distilled;
  return logits;
}

at::Tensor Vit::run_features(const at::Tensor& pixels, nn::Pass& pass) {
  const at::Tensor tokens = nn::run_blocks(blocks_, embed(pixels), norm_.get(), pass).normed;
  return tokens.narrow(1, num_prefix_tokens(), tokens.size(1) - num_prefix_tokens());
}

std::map<std::string, LabelValue> Vit::own_labels() const {
  return {{"distilled", options_.distilled},
          {"num_heads", options_.num_heads},
          {"size", options_.size}};
}

}  // namespace elliptical::models
