// SPDX-License-Identifier: MIT
#include "elliptical/models/rvt.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

#include "elliptical/base/errors.h"
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

int64_t num_parameters(const char* model, const std::vector<std::string>& assignments) {
  return models::make_image_model(image_model_options(model, assignments), 1000)->num_parameters();
}

std::vector<std::string> starred(const char* size, const char* layers) {
  return {size, "attention.name=rvt", "attention.normalize_keys=false", layers};
}

/// Two stages of 2 x 2 tokens and 1.
std::vector<std::string> small_rvt(const std::vector<std::string>& more = {}) {
  std::vector<std::string> all{"image_size=32",   "dims=[8,16]", "num_layers=[2,2]",
                               "num_heads=[2,4]", "drop_path=0", "attention.name=softmax"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

TEST(DeitRvt, HasThePublishedSizes) {
  EXPECT_EQ(num_parameters("vit", {"attention.name=rvt"}), 7114540);
  EXPECT_EQ(num_parameters("vit", {"size=small", "attention.name=rvt"}), 24844912);
  EXPECT_EQ(num_parameters("vit", {"size=base", "attention.name=rvt"}), 92156152);
}

TEST(Rvt, HasThePublishedSizes) {
  for (const char* attention : {"attention.name=softmax", "attention.name=elliptical"}) {
    EXPECT_EQ(num_parameters("rvt", {attention}), 8646376);
    EXPECT_EQ(num_parameters("rvt", {"size=small", attention}), 22148392);
    EXPECT_EQ(num_parameters("rvt", {"size=base", attention}), 86223784);
  }
  EXPECT_EQ(num_parameters("rvt", starred("size=tiny", "attention.gated_layers=10")), 10951336);
  EXPECT_EQ(num_parameters("rvt", starred("size=small", "attention.gated_layers=5")), 23300872);
  EXPECT_EQ(num_parameters("rvt", starred("size=base", "attention.gated_layers=5")), 88528744);
  EXPECT_EQ(num_parameters("rvt", starred("size=base", "attention.gated_layers=12")), 91755688);
}

// The public code sets the norms and leaves everything else to torch.
TEST(Rvt, LinearLayersStartAsTorchLeavesThem) {
  for (const char* mlp : {"conv_feedforward=true", "conv_feedforward=false"}) {
    const auto model = make_image_model("rvt", small_rvt({"dims=[64,128]", mlp}));
    model->initialize(3);
    const auto parameters = model->named_parameters();
    int64_t num_matrices = 0;
    for (const auto& item : parameters) {
      const std::string& name = item.key();
      const at::Tensor& weight = item.value();
      if (!name.ends_with(".weight") || weight.dim() < 2) continue;
      num_matrices += weight.dim() == 2;
      const double bound = 1.0 / std::sqrt(static_cast<double>(weight[0].numel()));
      const double largest = weight.abs().max().item<double>();
      EXPECT_LE(largest, bound) << name;
      EXPECT_GE(largest, 0.9 * bound) << name;
      const at::Tensor* bias = parameters.find(name.substr(0, name.size() - 6) + "bias");
      if (bias == nullptr) continue;
      EXPECT_LE(bias->abs().max().item<double>(), bound) << name;
      EXPECT_GT(bias->abs().max().item<double>(), 0.0) << name;
    }
    EXPECT_GE(num_matrices, 9) << mlp;  // two of each attention, and the head
  }
}

TEST(Rvt, TokensFollowTheStem) {
  EXPECT_EQ(make_image_model("rvt", {})->num_tokens(), 196);
  EXPECT_EQ(make_image_model("rvt", {"image_size=32"})->num_tokens(), 4);
  const auto smallest = make_image_model("rvt", small_rvt({"image_size=15"}));
  EXPECT_EQ(smallest->num_tokens(), 1);
  EXPECT_EQ(evaluate(*smallest, some_pixels(2, 15)).sizes(), (at::IntArrayRef{2, 5}));
}

TEST(Rvt, SmallPatchesSeeEveryPixel) {
  const auto model = make_image_model("rvt", small_rvt({"patch_size=4"}));
  EXPECT_EQ(model->num_tokens(), 64);
  ASSERT_EQ(model->stages().size(), 2u);
  EXPECT_EQ(model->stages()[1].num_tokens, 16);
  stir_parameters(*model);
  const at::Tensor pixels = some_pixels(1, 32);
  const at::Tensor before = evaluate(*model, pixels);
  for (const int64_t corner : {0, 31}) {
    at::Tensor changed = pixels.clone();
    changed.select(2, corner).select(2, corner).add_(1.0);
    EXPECT_FALSE(at::equal(evaluate(*model, changed), before)) << corner;
  }
}

TEST(Rvt, EveryParameterLearns) {
  for (const char* attention :
       {"attention.name=softmax", "attention.name=elliptical", "attention.name=rvt"}) {
    // Stages of 16 tokens and 4: attention over one token would have no say.
    const auto model = make_image_model("rvt", small_rvt({"image_size=64", attention}));
    stir_parameters(*model);
    nn::Pass pass;
    pass.training = true;
    model->forward(some_pixels(3, 64), pass).square().sum().backward();
    for (const auto& item : model->named_parameters()) {
      // A bias in front of a batch norm cancels, and so does one of keys in a softmax.
      ASSERT_TRUE(item.value().grad().defined()) << item.key();
      if (item.key().find("bias") != std::string::npos) continue;
      EXPECT_GT(item.value().grad().abs().max().item<double>(), 0.0)
          << attention << " " << item.key();
    }
  }
}

TEST(Rvt, BatchNormsRememberTrainingAndUseItInEvaluation) {
  const auto model = make_image_model("rvt", small_rvt());
  stir_parameters(*model);
  const at::Tensor pixels = some_pixels(8, 32);
  const at::Tensor before = evaluate(*model, pixels);
  ASSERT_EQ(model->named_buffers().size(), 2u * (1 + 3 * 4));
  const at::Tensor mean = model->named_buffers()["patch_embed.proj.1.running_mean"];
  const torch::NoGradGuard no_grad;
  nn::Pass pass;
  pass.training = true;
  at::Tensor trained;
  for (int i = 0; i < 200; ++i) trained = model->forward(pixels, pass);
  EXPECT_GT(mean.abs().max().item<double>(), 0.01);
  const at::Tensor after = evaluate(*model, pixels);
  EXPECT_FALSE(torch::allclose(after, before, 0, 1e-3));
  // Running variances are unbiased, those of a batch are not: the smallest batch has 8 numbers.
  EXPECT_TRUE(torch::allclose(after, trained, 0.3, 0.3));
  const at::Tensor kept = mean.clone();
  evaluate(*model, pixels);
  EXPECT_TRUE(at::equal(mean, kept));
  // One picture at a time: evaluation does not mix the pictures of a batch.
  EXPECT_TRUE(
      torch::allclose(evaluate(*model, pixels.narrow(0, 3, 1)), after.narrow(0, 3, 1), 0, 1e-5));
}

TEST(Rvt, NamesAreThoseOfPublicCheckpoints) {
  const auto parameters =
      make_image_model("rvt", small_rvt({"attention.name=rvt"}))->named_parameters();
  for (const char* name :
       {"patch_embed.proj.0.weight", "patch_embed.proj.1.weight", "patch_embed.proj.3.bias",
        "transformers.0.blocks.1.attn.qkv.weight", "transformers.1.blocks.0.mlp.fc1.weight",
        "transformers.1.blocks.0.mlp.dwconv.weight", "transformers.0.blocks.0.mlp.bn3.bias",
        "pools.0.conv.weight", "norm.weight", "head.bias"}) {
    EXPECT_TRUE(parameters.contains(name)) << name;
  }
  EXPECT_EQ(parameters["pools.0.conv.weight"].sizes(), (at::IntArrayRef{16, 1, 3, 3}));
  EXPECT_EQ(parameters["transformers.0.blocks.0.mlp.fc1.weight"].sizes(),
            (at::IntArrayRef{32, 8, 1, 1}));
}

TEST(Rvt, RefusesWhatMakesNoSense) {
  const auto refusal = [](const std::vector<std::string>& assignments) {
    return error_message<ConfigError>([&] { make_image_model("rvt", small_rvt(assignments)); });
  };
  EXPECT_EQ(refusal({"num_heads=[2]"}),
            "model: dims, num_layers and num_heads must have one number for each stage, got 2, 2 "
            "and 1");
  EXPECT_EQ(
      refusal({"num_layers=[2,0]"}),
      "--set num_layers=[2,0]: num_layers: each element must be a whole number in [1, 1000], got "
      "0");
  EXPECT_EQ(refusal({"dims=[8,12]"}), "model: dims must grow by whole factors, got 12 after 8");
  EXPECT_EQ(refusal({"image_size=14"}),
            "model: image_size must be at least 15 for the stem, got 14");
  EXPECT_EQ(refusal({"image_size=3", "patch_size=4"}),
            "model: image_size must be at least 4 for the stem, got 3");
  EXPECT_EQ(refusal({"patch_size=8"}), "model: patch_size must be 16 or 4, got 8");
}

}  // namespace
}  // namespace elliptical::models
