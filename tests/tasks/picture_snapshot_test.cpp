// SPDX-License-Identifier: MIT
#include "elliptical/tasks/picture_snapshot.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "elliptical/tasks/classify_image.h"
#include "tests/support/attention_variants.h"
#include "tests/support/passes.h"
#include "tests/support/small_pictures_task.h"

namespace elliptical::tasks {
namespace {

using nlohmann::json;
using support::small_vit;
using support::small_vit_options;

std::map<std::string, at::Tensor> by_name(const Snapshot& snapshot) {
  return {snapshot.tensors.begin(), snapshot.tensors.end()};
}

Snapshot snapshot_of(const ClassifyImageOptions& options) {
  ClassifyImageTask task(options, 1);
  task.model().eval();
  ImageEvalOptions eval;
  return task.snapshot(eval).value();
}

// Two tokens, two layers, by hand: A_1' = (3/4, 1/4; 0, 1), A_2' = (1/2, 1/2; 1/2, 1/2).
TEST(AttentionRollout, IsTheProductOfTheLayersLastFirst) {
  const at::Tensor first = torch::tensor({{{0.5, 0.5}, {0.0, 1.0}}}, torch::kDouble);
  const at::Tensor last = torch::tensor({{{0.0, 1.0}, {1.0, 0.0}}}, torch::kDouble);
  const at::Tensor expected = torch::tensor({{0.375, 0.625}, {0.375, 0.625}}, torch::kDouble);
  EXPECT_TRUE(attention_rollout({first, last}).allclose(expected, 0, 1e-15));
}

TEST(AttentionRollout, ScalesRowsAndTakesTheMeanOfHeads) {
  // The mean of the heads is (1, 1; 0, 1): with the residual (1, 1/2; 0, 1), rows scaled.
  const at::Tensor maps =
      torch::tensor({{{2.0, 0.0}, {0.0, 2.0}}, {{0.0, 2.0}, {0.0, 0.0}}}, torch::kDouble);
  const at::Tensor expected = torch::tensor({{2.0 / 3, 1.0 / 3}, {0.0, 1.0}}, torch::kDouble);
  EXPECT_TRUE(attention_rollout({maps}).allclose(expected, 0, 1e-15));
}

TEST(AttentionRollout, OfUniformAttentionIsUniformAndIdentity) {
  for (const int64_t L : {1, 2, 5}) {
    const int64_t N = 6;
    const std::vector<at::Tensor> maps(static_cast<size_t>(L), torch::full({3, N, N}, 1.0 / N));
    const double kept = std::pow(0.5, L);  // of a token for itself
    const at::Tensor expected =
        kept * torch::eye(N, torch::kDouble) + (1 - kept) * torch::full({N, N}, 1.0 / N);
    EXPECT_TRUE(attention_rollout(maps).allclose(expected, 0, 1e-6)) << L;  // the maps are float
  }
}

TEST(AttentionRollout, HasRowsThatSumToOne) {
  torch::manual_seed(1);
  std::vector<at::Tensor> maps;
  for (int64_t layer = 0; layer < 4; ++layer) maps.push_back(torch::rand({2, 5, 5}));
  EXPECT_TRUE(attention_rollout(maps).sum(1).allclose(torch::ones({5}, torch::kDouble), 0, 1e-12));
}

TEST(AttentionRollout, FollowsTheLastLayersWithEquallyManyTokens) {
  const at::Tensor early = torch::full({1, 9, 9}, 1.0 / 9),
                   late = torch::tensor({{{0.5, 0.5}, {0.0, 1.0}}});
  EXPECT_TRUE(attention_rollout({early, late}).equal(attention_rollout({late})));
}

TEST(HeatMap, IsTheRowOfTheClassTokenWithoutTokensInFront) {
  const at::Tensor maps = torch::arange(2 * 36, torch::kFloat).view({2, 6, 6});
  const at::Tensor heat = heat_map(maps, 2);  // two tokens in front, four patches
  EXPECT_TRUE(
      heat.equal(torch::tensor({{{2.0F, 3.0F}, {4.0F, 5.0F}}, {{38.0F, 39.0F}, {40.0F, 41.0F}}})));
}

TEST(HeatMap, WithoutClassTokenIsTheMeanOverQueries) {
  const at::Tensor map = torch::arange(16, torch::kFloat).view({4, 4});
  EXPECT_TRUE(heat_map(map, 0).equal(torch::tensor({{6.0F, 7.0F}, {8.0F, 9.0F}})));
  EXPECT_THROW(heat_map(map, 1), c10::Error) << "three patches are no square";
}

TEST(PictureSnapshot, ShowsPicturesOfDifferentClasses) {
  const Snapshot snapshot = snapshot_of(small_vit_options());
  const auto tensors = by_name(snapshot);
  const int64_t P = 4, H = 2, N = 17, D = 8, G = 4;
  EXPECT_EQ(tensors.at("pictures").sizes(), at::IntArrayRef({P, 3, 16, 16}));
  EXPECT_EQ(tensors.at("rollout").sizes(), at::IntArrayRef({P, G, G}));
  EXPECT_EQ(tensors.at("layers.1.heat").sizes(), at::IntArrayRef({P, H, G, G}));
  // The first picture as a text has it, and its heat map is a row of its map.
  EXPECT_EQ(tensors.at("layers.1.attention").sizes(), at::IntArrayRef({H, N, N}));
  EXPECT_EQ(tensors.at("layers.1.metric").size(2), D);
  EXPECT_EQ(tensors.at("layers.0.keys").sizes(), at::IntArrayRef({H, N, D}));
  EXPECT_EQ(tensors.count("layers.0.values"), 0);
  EXPECT_TRUE(tensors.at("layers.1.heat")[0].flatten(1).equal(
      tensors.at("layers.1.attention").select(1, 0).narrow(1, 1, G * G)));
  EXPECT_TRUE(tensors.at("rollout")[0].flatten().allclose(
      attention_rollout({tensors.at("layers.0.attention"), tensors.at("layers.1.attention")})[0]
          .narrow(0, 1, G * G)
          .to(at::kFloat)));
  EXPECT_FALSE(tensors.at("layers.1.heat")[0].equal(tensors.at("layers.1.heat")[1]));

  EXPECT_EQ(snapshot.metadata.at("prefix_tokens"), "1");
  EXPECT_EQ(snapshot.metadata.at("data"), "small-pictures");
  EXPECT_EQ(snapshot.metadata.at("split"), "valid");
  EXPECT_TRUE(snapshot.missing.empty());
  const json pictures = json::parse(snapshot.metadata.at("pictures"));
  ASSERT_EQ(pictures.size(), 4U);
  EXPECT_EQ(pictures[2]["class"], "square");
  EXPECT_EQ(pictures[2]["number"], 2);
}

TEST(PictureSnapshot, SaysWhatTheModelSays) {
  ClassifyImageTask task(small_vit_options(), 1);
  task.model().eval();
  {
    const at::NoGradGuard no_grad;  // so that pictures are told apart
    for (at::Tensor& parameter : task.model().parameters()) parameter.mul_(8);
  }
  ImageEvalOptions eval;
  eval.split = data::Split::kTest;
  const Snapshot snapshot = task.snapshot(eval).value();
  const at::NoGradGuard no_grad;
  const at::Tensor pixels = by_name(snapshot).at("pictures");
  const at::Tensor said = support::logits_of(task, pixels, false).argmax(1);
  const auto set = task.picture_set(eval);
  const json pictures = json::parse(snapshot.metadata.at("pictures"));
  for (int64_t p = 0; p < 4; ++p) {
    const auto place = static_cast<size_t>(said[p].item<int64_t>());
    EXPECT_EQ(pictures[static_cast<size_t>(p)]["said"], set->class_names()[place]);
  }
  EXPECT_TRUE(pixels.equal(set->get(0).input.narrow(0, 0, 4))) << "classes take turns";
}

TEST(PictureSnapshot, IsOfUndamagedPictures) {
  ClassifyImageTask task(small_vit_options(), 1);
  ImageEvalOptions damaged;
  damaged.corrupt = "fog";
  damaged.max_pictures = 2;
  ImageEvalOptions whole;
  const Snapshot one = task.snapshot(damaged).value(), other = task.snapshot(whole).value();
  EXPECT_TRUE(by_name(one).at("pictures").equal(by_name(other).at("pictures")));
}

TEST(PictureSnapshot, IsThereForEveryModel) {
  for (const char* name : {"vit", "rvt", "fan"}) {
    for (const bool distilled : {false, true}) {
      ClassifyImageOptions options;
      options.model = ChosenOptions(models::image_model_choices(), name);
      options.shrink();
      if (distilled && std::string(name) != "vit") continue;
      if (distilled) small_vit(options).distilled = true;
      const Snapshot snapshot = snapshot_of(options);
      const auto tensors = by_name(snapshot);
      const bool is_vit = std::string(name) == "vit", is_rvt = std::string(name) == "rvt";
      EXPECT_EQ(snapshot.metadata.at("prefix_tokens"), !is_vit ? "0" : distilled ? "2" : "1");
      EXPECT_EQ(tensors.at("layers.0.heat").size(2), is_rvt ? 8 : 4) << name;
      // Rollout is of the second stage of rvt, which has 4 x 4 tokens.
      EXPECT_EQ(tensors.at("rollout").size(1), 4) << name;
      EXPECT_TRUE(tensors.at("rollout").isfinite().all().item<bool>());
    }
  }
}

TEST(PictureSnapshot, IsThereForEveryAttentionWithAMap) {
  ClassifyImageOptions options = small_vit_options();
  ImageEvalOptions one_by_one;
  one_by_one.batch_size = 1;
  for (const support::AttentionVariant& variant : support::attention_variants()) {
    small_vit(options).attention = variant.options();
    ClassifyImageTask task(options, 1);
    task.model().eval();
    const Snapshot snapshot = task.snapshot(one_by_one).value();
    ASSERT_EQ(snapshot.missing.empty(), variant.can().has_map) << variant.name;
    if (!variant.can().has_map) continue;
    const auto tensors = by_name(snapshot);
    const at::Tensor heat = tensors.at("layers.1.heat"), rollout = tensors.at("rollout");
    EXPECT_GE(heat.min().item<double>(), 0) << variant.name;
    EXPECT_GT(heat.max().item<double>(), 0) << variant.name;
    EXPECT_TRUE(rollout.isfinite().all().item<bool>()) << variant.name;
    EXPECT_LE(rollout.sum({1, 2}).max().item<double>(), 1 + 1e-6) << variant.name;
  }
}

TEST(PictureSnapshot, OfTooManyTokensIsMissing) {
  ClassifyImageOptions options = small_vit_options();
  small_vit(options).image_size = 64;
  small_vit(options).patch_size = 2;
  small_vit(options).dim = 2;
  small_vit(options).num_layers = 1;
  const Snapshot snapshot = snapshot_of(options);
  EXPECT_TRUE(snapshot.tensors.empty());
  EXPECT_EQ(snapshot.missing,
            "snapshot: maps of attention are kept of at most 1024 tokens, the model has 1025 (the "
            "report has no heat maps of it)");
}

TEST(PictureSnapshot, OfLongMapsHasHeatMapsOnly) {
  ClassifyImageOptions options = small_vit_options();
  small_vit(options).image_size = 60;  // 901 tokens: 3 MB a head and layer
  small_vit(options).patch_size = 2;
  small_vit(options).dim = 12;
  small_vit(options).num_heads = 12;
  const Snapshot snapshot = snapshot_of(options);
  const auto tensors = by_name(snapshot);
  EXPECT_EQ(tensors.count("layers.0.attention"), 0);
  EXPECT_EQ(tensors.at("layers.1.heat").sizes(), at::IntArrayRef({4, 12, 30, 30}));
  EXPECT_EQ(snapshot.missing,
            "snapshot: whole maps of attention are kept up to 64 MB, these have 74 (the report has "
            "heat maps only)");
}

TEST(PictureHeatTest, OfAnEmptyTraceIsNone) {
  EXPECT_FALSE(picture_heat({}, 1));
  nn::Trace trace;
  trace.tensors["layers.0.queries"] = torch::zeros({1, 2, 5, 3});
  EXPECT_FALSE(picture_heat(trace, 1));
}

}  // namespace
}  // namespace elliptical::tasks
