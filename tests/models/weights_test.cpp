// SPDX-License-Identifier: MIT
#include "elliptical/models/weights.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "elliptical/base/errors.h"
#include "tests/support/error_message.h"
#include "tests/support/small_image_model.h"

namespace elliptical::models {
namespace {

using support::evaluate;
using support::make_image_model;
using support::small_vit;
using support::some_pixels;
using support::stir_parameters;
using test::error_message;
using Weights = std::map<std::string, at::Tensor>;

Weights weights_of(const ImageModel& model) {
  Weights weights;
  for (const auto& item : model.named_parameters()) {
    weights[item.key()] = item.value().detach().clone();
  }
  for (const auto& item : model.named_buffers()) weights[item.key()] = item.value().clone();
  return weights;
}

std::shared_ptr<ImageModel> stirred(const std::vector<std::string>& more = {}) {
  auto model = make_image_model("vit", small_vit(more));
  stir_parameters(*model);
  return model;
}

TEST(Weights, CopyAModel) {
  for (const char* name : {"vit", "rvt", "fan"}) {
    const std::vector<std::string> small =
        std::string(name) == "vit" ? small_vit() : std::vector<std::string>{"image_size=32"};
    const auto from = make_image_model(name, small), to = make_image_model(name, small);
    stir_parameters(*from);
    {
      const torch::NoGradGuard no_grad;
      for (auto& item : from->named_buffers()) item.value().add_(0.5);
    }
    const at::Tensor pixels = some_pixels(2, from->options().image_size);
    EXPECT_FALSE(at::equal(evaluate(*from, pixels), evaluate(*to, pixels)));
    Weights weights = weights_of(*from);
    weights["stem.num_batches_tracked"] = torch::ones({});  // what published files carry
    EXPECT_TRUE(load_weights(*to, weights, "w").empty());
    EXPECT_TRUE(at::equal(evaluate(*from, pixels), evaluate(*to, pixels))) << name;
  }
}

TEST(Weights, OfHalfPrecisionAreCast) {
  const auto from = stirred();
  for (const auto type : {torch::kHalf, torch::kBFloat16, torch::kDouble}) {
    Weights weights = weights_of(*from);
    for (auto& [name, value] : weights) value = value.to(type);
    const auto to = make_image_model("vit", small_vit());
    EXPECT_TRUE(load_weights(*to, weights, "w").empty());
    for (const auto& item : to->named_parameters()) {
      EXPECT_EQ(item.value().scalar_type(), torch::kFloat);
      EXPECT_TRUE(at::equal(item.value(), weights[item.key()].to(torch::kFloat)));
    }
  }
}

TEST(Weights, EllipticalNeedsNoneOfItsOwn) {
  const auto to = make_image_model("vit", small_vit({"attention.name=elliptical"}));
  EXPECT_TRUE(load_weights(*to, weights_of(*stirred()), "w").empty());
}

TEST(Weights, ParametersOfAVariantKeepTheirFirstValues) {
  const auto to =
      make_image_model("vit", small_vit({"attention.name=fourier", "attention.radius=1.5"}));
  const auto notices = load_weights(*to, weights_of(*stirred()), "w");
  ASSERT_EQ(notices.size(), 3u);
  EXPECT_EQ(notices[0], "w: has no blocks.0.attn.mixer.radius, which keeps its first values");
  EXPECT_EQ(to->named_parameters()["blocks.2.attn.mixer.radius"].item<double>(), 1.5);
}

TEST(Weights, HeadsForOtherClassesAreLeftOut) {
  const auto to = make_image_model("vit", small_vit(), 7);
  const at::Tensor before = to->named_parameters()["head.weight"].detach().clone();
  const auto notices = load_weights(*to, weights_of(*stirred()), "w");
  ASSERT_EQ(notices.size(), 2u);
  EXPECT_EQ(notices[1],
            "w: head.weight is for 5 classes, the model has 7: it keeps its first values");
  EXPECT_TRUE(at::equal(to->named_parameters()["head.weight"], before));
}

TEST(Weights, PositionsAreResizedOnTheirGrid) {
  const auto from = stirred({"distilled=true"});
  const auto to = make_image_model("vit", small_vit({"distilled=true", "image_size=12"}));
  const auto notices = load_weights(*to, weights_of(*from), "w");
  EXPECT_EQ(notices,
            (std::vector<std::string>{"w: pos_embed is resized from 2 x 2 to 3 x 3 patches"}));
  const at::Tensor old_positions = from->named_parameters()["pos_embed"].detach(),
                   positions = to->named_parameters()["pos_embed"].detach();
  EXPECT_TRUE(at::equal(positions.narrow(1, 0, 2), old_positions.narrow(1, 0, 2)));
  const at::Tensor grid = old_positions.narrow(1, 2, 4).transpose(1, 2).reshape({1, 8, 2, 2});
  const at::Tensor expected =
      torch::nn::functional::interpolate(grid, torch::nn::functional::InterpolateFuncOptions()
                                                   .size(std::vector<int64_t>{3, 3})
                                                   .mode(torch::kBicubic)
                                                   .align_corners(false));
  EXPECT_TRUE(
      torch::allclose(positions.narrow(1, 2, 9), expected.flatten(2).transpose(1, 2), 0, 1e-6));
}

TEST(Weights, ResizingKeepsConstantsAndTheSameGrid) {
  const at::Tensor constant = torch::full({1, 10, 4}, 0.25);
  EXPECT_TRUE(torch::allclose(resize_positions(constant, 1, 17), torch::full({1, 17, 4}, 0.25)));
  const at::Tensor gates = torch::randn({2, 10, 10});
  EXPECT_TRUE(torch::allclose(resize_gates(gates, 1, 10), gates));
  const at::Tensor larger = resize_gates(gates, 1, 17);
  EXPECT_EQ(larger.sizes(), (at::IntArrayRef{2, 17, 17}));
  EXPECT_TRUE(torch::allclose(larger.select(1, 0).select(1, 0), gates.select(1, 0).select(1, 0)));
  // Queries and keys are treated alike.
  EXPECT_TRUE(
      torch::allclose(resize_gates(gates.transpose(1, 2), 1, 17), larger.transpose(1, 2), 0, 1e-6));
}

TEST(Weights, GatesFollowTheGrid) {
  const auto from = stirred({"attention.name=rvt"});
  const auto to = make_image_model("vit", small_vit({"attention.name=rvt", "image_size=12"}));
  EXPECT_EQ(load_weights(*to, weights_of(*from), "w").size(), 4u);
  EXPECT_TRUE(
      torch::allclose(to->named_parameters()["blocks.1.attn.mixer.gate"],
                      resize_gates(from->named_parameters()["blocks.1.attn.mixer.gate"], 1, 10)));
}

TEST(Weights, ListsAllThatDoesNotFit) {
  Weights weights = weights_of(*stirred());
  weights.erase("cls_token");
  weights.erase("norm.bias");
  weights["dist_token"] = torch::ones({1, 1, 8});
  weights["blocks.0.attn.qkv.weight"] = torch::ones({24, 9});
  const auto to = make_image_model("vit", small_vit());
  EXPECT_EQ(error_message<DataError>([&] { load_weights(*to, weights, "w"); }),
            "w: weights must be those of the model, missing cls_token, norm.bias; not of the "
            "model: dist_token; of another shape: blocks.0.attn.qkv.weight (24, 9), must be (24, "
            "8)");
  EXPECT_NE(error_message<DataError>([&] { load_weights(*to, {}, "w"); }).find(" and 24 more"),
            std::string::npos)
      << error_message<DataError>([&] { load_weights(*to, {}, "w"); });
}

}  // namespace
}  // namespace elliptical::models
