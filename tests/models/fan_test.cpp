// SPDX-License-Identifier: MIT
#include "elliptical/models/fan.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "elliptical/base/errors.h"
#include "elliptical/nn/feedforward/channel_attention.h"
#include "elliptical/nn/feedforward/gelu_mlp.h"
#include "tests/support/error_message.h"
#include "tests/support/small_image_model.h"

namespace elliptical::models {
namespace {

using support::evaluate;
using support::image_model_options;
using support::make_image_model;
using support::some_pixels;
using support::stir_parameters;
using test::error_message;

std::vector<std::string> small_fan(const std::vector<std::string>& more = {}) {
  std::vector<std::string> all{"image_size=32", "dim=16",      "num_layers=2",
                               "num_heads=2",   "drop_path=0", "attention.name=softmax"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

void set_all(torch::nn::Module& module, const std::string& end, double value) {
  const torch::NoGradGuard no_grad;
  for (auto& item : module.named_parameters()) {
    if (item.key().ends_with(end)) item.value().fill_(value);
  }
}

/// Random numbers in every parameter.
void fill(torch::nn::Module& module) {
  const torch::NoGradGuard no_grad;
  torch::manual_seed(3);
  for (at::Tensor& parameter : module.parameters()) parameter.normal_(0.0, 0.5);
}

int64_t count(const torch::nn::Module& module) {
  int64_t sum = 0;
  for (const at::Tensor& parameter : module.parameters()) sum += parameter.numel();
  return sum;
}

TEST(Fan, HasThePublishedSizes) {
  const auto size = [](const std::vector<std::string>& assignments) {
    return models::make_image_model(image_model_options("fan", assignments), 1000)
        ->num_parameters();
  };
  for (const char* attention : {"attention.name=softmax", "attention.name=elliptical"}) {
    EXPECT_EQ(size({attention}), 7319920);
  }
  EXPECT_EQ(size({"size=small"}), 28345336);
  EXPECT_EQ(size({"size=base"}), 54350320);
  EXPECT_EQ(size({"size=large"}), 80574100);
  // For 10 classes and patches of 4, as the public code has it.
  EXPECT_EQ(models::make_image_model(
                image_model_options("fan", {"image_size=32", "patch_size=4", "dim=64",
                                            "num_layers=4", "num_heads=4"}),
                10)
                ->num_parameters(),
            356202);
}

TEST(Fan, PartsHaveTheirSizes) {
  const auto model = make_image_model("fan", {}, 1000);
  const auto modules = model->named_modules();
  EXPECT_EQ(count(*modules["patch_embed"]), 219096);
  EXPECT_EQ(count(*modules["pos_embed"]), 12480);
  EXPECT_EQ(count(*modules["blocks.5"]), 500356);
  EXPECT_EQ(count(*modules["cls_attn_blocks.1"]), 445248);
}

TEST(Fan, SmallPatchesHaveShorterStems) {
  for (const auto& [patch, num_tokens] : {std::pair{"patch_size=4", 64}, {"patch_size=8", 16}}) {
    const auto model = make_image_model("fan", small_fan({patch}));
    EXPECT_EQ(model->num_tokens(), num_tokens);
    stir_parameters(*model);
    EXPECT_EQ(evaluate(*model, some_pixels(2, 32)).sizes(), (at::IntArrayRef{2, 5}));
  }
}

// So that public weights fit: C / 4 -> C with patches of 4, C / 4 -> C / 2 -> C with patches of 8.
TEST(Fan, StemsWidenAsPublished) {
  const auto widths = [](const char* patch) {
    const auto parameters = make_image_model("fan", small_fan({patch}))->named_parameters();
    std::vector<int64_t> result;
    for (int64_t i = 0;; i += 2) {
      const at::Tensor* weight =
          parameters.find("patch_embed.proj." + std::to_string(i) + ".0.weight");
      if (weight == nullptr) return result;
      result.push_back(weight->size(0));
    }
  };
  EXPECT_EQ(widths("patch_size=4"), (std::vector<int64_t>{4, 16}));
  EXPECT_EQ(widths("patch_size=8"), (std::vector<int64_t>{4, 8, 16}));
  EXPECT_EQ(widths("patch_size=16"), (std::vector<int64_t>{2, 4, 8, 16}));
}

TEST(Fan, EveryParameterLearns) {
  for (const char* attention : {"attention.name=softmax", "attention.name=elliptical"}) {
    const auto model = make_image_model("fan", small_fan({attention}));
    stir_parameters(*model);
    nn::Pass pass;
    pass.training = true;
    model->forward(some_pixels(3, 32), pass).square().sum().backward();
    for (const auto& item : model->named_parameters()) {
      ASSERT_TRUE(item.value().grad().defined()) << item.key();
      if (item.key().find("bias") != std::string::npos) continue;  // those of keys cancel
      EXPECT_GT(item.value().grad().abs().max().item<double>(), 0.0)
          << attention << " " << item.key();
    }
  }
}

TEST(Fan, EllipticalChangesTokenMixingOnly) {
  const auto plain = make_image_model("fan", small_fan());
  const auto elliptical = make_image_model("fan", small_fan({"attention.name=elliptical"}));
  const at::Tensor pixels = some_pixels(2, 32);
  stir_parameters(*plain);
  stir_parameters(*elliptical);
  EXPECT_FALSE(at::equal(evaluate(*plain, pixels), evaluate(*elliptical, pixels)));
  // One block has no block before it to read a metric off.
  const auto one = make_image_model("fan", small_fan({"num_layers=1"}));
  const auto one_elliptical =
      make_image_model("fan", small_fan({"num_layers=1", "attention.name=elliptical"}));
  stir_parameters(*one);
  stir_parameters(*one_elliptical);
  EXPECT_TRUE(at::equal(evaluate(*one, pixels), evaluate(*one_elliptical, pixels)));
}

TEST(Fan, BlocksWithoutGammaAreTheIdentity) {
  const auto model = make_image_model("fan", small_fan());
  stir_parameters(*model);
  const at::Tensor pixels = some_pixels(2, 32);
  const at::Tensor before = evaluate(*model, pixels);
  const torch::NoGradGuard no_grad;
  for (auto& item : model->named_parameters()) {
    const bool is_block = item.key().starts_with("blocks.");
    if (is_block && (item.key().ends_with("gamma1") || item.key().ends_with("gamma2"))) {
      item.value().zero_();
    }
  }
  const at::Tensor identity = evaluate(*model, pixels);
  EXPECT_FALSE(torch::allclose(identity, before, 0, 1e-4));
  // Then nothing inside the blocks has a say.
  for (auto& item : model->named_parameters()) {
    if (item.key().starts_with("blocks.") && item.key().find("gamma") == std::string::npos) {
      item.value().mul_(1.5);
    }
  }
  EXPECT_TRUE(at::equal(evaluate(*model, pixels), identity));
}

TEST(ChannelAttention, GatesLieBetweenTheSigmoidsOfZeroAndOne) {
  nn::ChannelAttention mixer(16, 2, 32, 4);
  fill(mixer);
  const torch::NoGradGuard no_grad;
  for (const double scale : {0.01, 1.0, 100.0}) {
    const at::Tensor gates = mixer.gates(torch::randn({3, 16, 16}) * scale);
    EXPECT_EQ(gates.sizes(), (at::IntArrayRef{3, 2, 8, 1}));
    EXPECT_GE(gates.min().item<double>(), 0.5);
    EXPECT_LE(gates.max().item<double>(), 0.7311);
  }
}

/// What a layer or block makes of `x` in evaluation.
template <class Module>
at::Tensor forward(Module& module, const at::Tensor& x) {
  nn::Pass pass;
  return module.forward(x, pass);
}

TEST(ChannelAttention, IsNothingWithoutTemperature) {
  nn::ChannelAttention mixer(16, 2, 32, 4);
  fill(mixer);
  const at::Tensor x = torch::randn({3, 16, 16});
  EXPECT_GT(forward(mixer, x).abs().max().item<double>(), 0.1);
  set_all(mixer, "temperature", 0.0);
  EXPECT_EQ(forward(mixer, x).abs().max().item<double>(), 0.0);
}

TEST(ChannelAttention, SeesTheOrderOfTokensAndAttentionDoesNot) {
  const torch::NoGradGuard no_grad;
  const at::Tensor x = torch::randn({2, 16, 16});
  const at::Tensor order = torch::randperm(16);
  const auto permuted = [&](const at::Tensor& t) { return t.index_select(1, order); };
  nn::ChannelAttention channels(16, 2, 32, 4);
  fill(channels);
  EXPECT_FALSE(
      torch::allclose(forward(channels, permuted(x)), permuted(forward(channels, x)), 1e-2, 1e-2));
  const nn::AttentionShape shape{.dim = 16, .num_heads = 2};
  const auto tokens =
      nn::make_attention(ChosenOptions(nn::attention_choices(), "elliptical"), shape);
  fill(*tokens);
  nn::Pass pass;
  EXPECT_TRUE(torch::allclose(tokens->forward(permuted(x), pass),
                              permuted(tokens->forward(x, pass)), 1e-4, 1e-4));
}

TEST(ClassBlock, PatchesAreNormedAndDoubled) {
  nn::ClassBlock block(16, 2, std::make_shared<nn::GeluMlp>(16, 32));
  fill(block);
  const torch::NoGradGuard no_grad;
  const at::Tensor x = torch::randn({2, 5, 16});
  const auto parameters = block.named_parameters();
  const auto norm = [&](const at::Tensor& t, const std::string& name) {
    return at::layer_norm(t, {16}, parameters[name + ".weight"], parameters[name + ".bias"], 1e-6);
  };
  const at::Tensor patches = x.narrow(1, 1, 4);
  const at::Tensor expected =
      2.0 * norm(patches + parameters["gamma1"] * norm(patches, "norm1"), "norm2");
  const at::Tensor out = forward(block, x);
  EXPECT_TRUE(torch::allclose(out.narrow(1, 1, 4), expected, 1e-5, 1e-5));
  EXPECT_FALSE(torch::allclose(
      out.narrow(1, 0, 1),
      2.0 * norm(x.narrow(1, 0, 1) + parameters["gamma1"] * norm(x.narrow(1, 0, 1), "norm1"),
                 "norm2"),
      1e-2, 1e-2));
}

TEST(Fan, NamesAreThoseOfPublicCheckpoints) {
  const auto parameters = make_image_model("fan", small_fan())->named_parameters();
  for (const char* name :
       {"patch_embed.proj.0.0.weight", "patch_embed.proj.6.1.bias",
        "pos_embed.token_projection.weight", "blocks.0.norm1.weight", "blocks.0.attn.proj.bias",
        "blocks.1.mlp.temperature", "blocks.1.mlp.mlp_v.fc1.weight",
        "blocks.1.mlp.mlp_v.dwconv.conv1.weight", "blocks.1.mlp.mlp_v.dwconv.bn.weight",
        "blocks.1.mlp.mlp_v.gamma", "blocks.1.mlp.norm_v.weight", "blocks.1.mlp.q.weight",
        "blocks.0.gamma1", "cls_token", "cls_attn_blocks.0.attn.q.weight",
        "cls_attn_blocks.1.mlp.fc2.bias", "cls_attn_blocks.1.gamma2", "norm.weight",
        "head.weight"}) {
    EXPECT_TRUE(parameters.contains(name)) << name;
  }
}

TEST(Fan, RefusesWhatMakesNoSense) {
  EXPECT_EQ(
      error_message<ConfigError>([] { make_image_model("fan", {"image_size=100"}); }),
      "model: image_size must be a multiple of patch_size, got image_size = 100, patch_size = "
      "16");
  EXPECT_EQ(error_message<ConfigError>([] { make_image_model("fan", {"dim=12"}); }),
            "model: dim must be a multiple of 8 for the stem of patches of 16, got 12");
  EXPECT_EQ(error_message<ConfigError>(
                [] { make_image_model("fan", {"dim=6", "patch_size=4", "num_heads=2"}); }),
            "model: dim must be a multiple of 4 for the stem of patches of 4, got 6");
  EXPECT_EQ(error_message<ConfigError>([] { make_image_model("fan", {"patch_size=12"}); }),
            "model: patch_size must be a power of 2 for the stem, got 12");
}

}  // namespace
}  // namespace elliptical::models
