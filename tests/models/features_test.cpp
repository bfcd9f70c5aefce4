// SPDX-License-Identifier: MIT
//
// What models of pictures offer beside logits: normed tokens of the patches, and the residual stream
// behind each block.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "tests/support/small_image_model.h"

namespace elliptical::models {
namespace {

using support::make_image_model;
using support::small_vit;
using support::some_pixels;

struct Case {
  const char* model;
  std::vector<std::string> assignments;
  int64_t side, dim, num_blocks;
};

std::vector<Case> cases() {
  return {
      {"vit", small_vit(), 2, 8, 3},
      {"vit", small_vit({"distilled=true"}), 2, 8, 3},
      {"fan", {"image_size=8", "patch_size=4", "dim=16", "num_layers=2", "num_heads=2"}, 2, 16, 2},
      {"rvt",
       {"image_size=16", "patch_size=4", "dims=[8, 16]", "num_layers=[1, 2]", "num_heads=[2, 2]"},
       2,
       16,
       3}};
}

TEST(ImageFeatures, AreTheNormOfTheLastResidualStream) {
  const torch::NoGradGuard no_grad;
  for (const Case& each : cases()) {
    const auto model = make_image_model(each.model, each.assignments);
    support::stir_parameters(*model);
    const int64_t size = model->options().image_size;
    nn::Trace trace({nn::Traced::kResidual});
    nn::Pass pass;
    pass.trace = &trace;
    const at::Tensor features = model->features(some_pixels(3, size), pass);
    const std::vector<int64_t> expected_sizes{3, each.side * each.side, each.dim};
    EXPECT_EQ(features.sizes(), expected_sizes) << each.model;
    ASSERT_EQ(trace.tensors.size(), each.num_blocks) << each.model;
    const at::Tensor last =
        trace.tensors.at("layers." + std::to_string(each.num_blocks - 1) + ".residual");
    const auto parameters = model->named_parameters();
    const at::Tensor normed =
        at::layer_norm(last, {each.dim}, parameters["norm.weight"], parameters["norm.bias"], 1e-6);
    const int64_t num_prefix = normed.size(1) - features.size(1);
    EXPECT_EQ(num_prefix, model->num_prefix_tokens()) << each.model;
    // Two ways to sum up a norm in float.
    EXPECT_LE(
        (normed.narrow(1, num_prefix, features.size(1)) - features).abs().max().item<double>(),
        1e-5)
        << each.model;
  }
}

TEST(ImageFeatures, DependOnEachPictureAlone) {
  const torch::NoGradGuard no_grad;
  for (const Case& each : cases()) {
    const auto model = make_image_model(each.model, each.assignments);
    support::stir_parameters(*model);
    const int64_t size = model->options().image_size;
    const at::Tensor pixels = some_pixels(3, size);
    at::Tensor changed = pixels.clone();
    changed[1].mul_(-2);
    const auto features = [&](const at::Tensor& of) {
      nn::Pass pass;
      return model->features(of, pass);
    };
    const at::Tensor before = features(pixels), after = features(changed);
    EXPECT_TRUE(at::equal(before[0], after[0])) << each.model;
    EXPECT_TRUE(at::equal(before[2], after[2])) << each.model;
    EXPECT_FALSE(at::equal(before[1], after[1])) << each.model;
  }
}

}  // namespace
}  // namespace elliptical::models
