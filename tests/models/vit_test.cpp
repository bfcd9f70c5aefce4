// SPDX-License-Identifier: MIT
#include "elliptical/models/vit.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <set>

#include "elliptical/base/config.h"
#include "elliptical/base/errors.h"
#include "tests/support/attention_variants.h"
#include "tests/support/error_message.h"
#include "tests/support/small_image_model.h"

namespace elliptical::models {
namespace {

using support::evaluate;
using support::image_model_options;
using support::make_image_model;
using support::small_vit;
using support::some_pixels;
using support::stir_parameters;

int64_t num_parameters(const std::vector<std::string>& assignments) {
  return models::make_image_model(image_model_options("vit", assignments), 1000)->num_parameters();
}

at::Tensor parameter(const ImageModel& model, const std::string& name) {
  return model.named_parameters()[name];
}

TEST(Vit, HasThePublishedSizes) {
  for (const char* attention :
       {"attention.name=softmax", "attention.name=elliptical", "attention.name=kde",
        "attention.name=mom", "attention.name=rkde", "attention.name=spkde"}) {
    EXPECT_EQ(num_parameters({attention}), 5717416) << attention;
  }
  EXPECT_EQ(num_parameters({"size=small"}), 22050664);
  EXPECT_EQ(num_parameters({"size=base"}), 86567656);
  EXPECT_EQ(num_parameters({"num_heads=6"}), 5717416);
  EXPECT_EQ(num_parameters({"distilled=true"}), 5910800);
  EXPECT_EQ(num_parameters({"size=small", "distilled=true"}), 22436432);
  EXPECT_EQ(num_parameters({"size=base", "distilled=true"}), 87338192);
  EXPECT_EQ(num_parameters({"attention.name=fourier"}), 5717428);
  EXPECT_EQ(num_parameters({"attention.name=fourier", "attention.radius_per_coordinate=true"}),
            5718184);
}

TEST(Vit, SizeSetsDefaultsOnly) {
  ChosenOptions chosen = image_model_options(
      "vit", {"num_heads=12", "attention.name=kde", "size=small", "image_size=32"});
  const auto& options = chosen.get<VitOptions>();
  EXPECT_EQ(options.dim, 384);
  EXPECT_EQ(options.num_heads, 12);
  EXPECT_EQ(options.image_size, 32);
  EXPECT_EQ(options.attention.name(), "kde");
  const std::string text = to_toml(fields_of(chosen));
  ChosenOptions read(image_model_choices(), "vit");
  read_recipe_text(text, "printed", fields_of(read));
  EXPECT_EQ(to_toml(fields_of(read)), text);
}

TEST(Vit, TokensOfKnownSizes) {
  EXPECT_EQ(make_image_model("vit", {})->num_tokens(), 197);
  EXPECT_EQ(make_image_model("vit", {"distilled=true"})->num_tokens(), 198);
  EXPECT_EQ(make_image_model("vit", {"image_size=32", "patch_size=4"})->num_tokens(), 65);
}

TEST(Vit, ParameterNamesAreThoseOfPublicCheckpoints) {
  const auto model = make_image_model("vit", small_vit({"num_layers=1", "distilled=true"}));
  std::map<std::string, std::vector<int64_t>> shapes;
  for (const auto& item : model->named_parameters()) {
    shapes[item.key()] = item.value().sizes().vec();
  }
  EXPECT_EQ(shapes,
            (std::map<std::string, std::vector<int64_t>>{{"cls_token", {1, 1, 8}},
                                                         {"dist_token", {1, 1, 8}},
                                                         {"pos_embed", {1, 6, 8}},
                                                         {"patch_embed.proj.weight", {8, 3, 4, 4}},
                                                         {"patch_embed.proj.bias", {8}},
                                                         {"blocks.0.norm1.weight", {8}},
                                                         {"blocks.0.norm1.bias", {8}},
                                                         {"blocks.0.attn.qkv.weight", {24, 8}},
                                                         {"blocks.0.attn.qkv.bias", {24}},
                                                         {"blocks.0.attn.proj.weight", {8, 8}},
                                                         {"blocks.0.attn.proj.bias", {8}},
                                                         {"blocks.0.norm2.weight", {8}},
                                                         {"blocks.0.norm2.bias", {8}},
                                                         {"blocks.0.mlp.fc1.weight", {16, 8}},
                                                         {"blocks.0.mlp.fc1.bias", {16}},
                                                         {"blocks.0.mlp.fc2.weight", {8, 16}},
                                                         {"blocks.0.mlp.fc2.bias", {8}},
                                                         {"norm.weight", {8}},
                                                         {"norm.bias", {8}},
                                                         {"head.weight", {5, 8}},
                                                         {"head.bias", {5}},
                                                         {"head_dist.weight", {5, 8}},
                                                         {"head_dist.bias", {5}}}));
}

TEST(Vit, StartsWithTheValuesOfItsSeed) {
  const auto model = make_image_model("vit", {"image_size=32", "patch_size=4"}, 10);
  for (const auto& item : model->named_parameters()) {
    const at::Tensor values = item.value().detach();
    const std::string& name = item.key();
    if (name == "patch_embed.proj.weight" || name == "patch_embed.proj.bias") {
      const double bound = 1.0 / std::sqrt(48.0);
      EXPECT_LE(values.abs().max().item<double>(), bound);
      EXPECT_GE(values.abs().max().item<double>(), 0.95 * bound);
    } else if (values.dim() >= 2) {
      // The standard deviation of n normal numbers is off by about 1 / sqrt(2 n); n >= 192.
      EXPECT_NEAR(values.std().item<double>(), 0.02, 0.02 * 0.2) << name;
    } else {
      const double value =
          name.find("norm") != std::string::npos && name.find("weight") != std::string::npos ? 1.0
                                                                                             : 0.0;
      EXPECT_TRUE((values == value).all().item<bool>()) << name;
    }
  }
  const auto again = make_image_model("vit", {"image_size=32", "patch_size=4"}, 10);
  EXPECT_TRUE(at::equal(parameter(*model, "pos_embed"), parameter(*again, "pos_embed")));
  again->initialize(2);
  EXPECT_FALSE(at::equal(parameter(*model, "pos_embed"), parameter(*again, "pos_embed")));
}

/// DeiT as its paper writes it, in plain operations on the named parameters.
at::Tensor reference(const ImageModel& model, const at::Tensor& pixels, int64_t H, int64_t L) {
  const auto get = [&](const std::string& name) { return parameter(model, name).to(at::kDouble); };
  const auto linear = [&](const at::Tensor& x, const std::string& name) {
    return x.matmul(get(name + ".weight").t()) + get(name + ".bias");
  };
  const auto norm = [&](const at::Tensor& x, const std::string& name) {
    const at::Tensor centred = x - x.mean(-1, true);
    const at::Tensor variance = centred.square().mean(-1, true);
    return centred / (variance + 1e-6).sqrt() * get(name + ".weight") + get(name + ".bias");
  };
  const int64_t P = get("patch_embed.proj.weight").size(2);
  at::Tensor x = at::conv2d(pixels.to(at::kDouble), get("patch_embed.proj.weight"),
                            get("patch_embed.proj.bias"), P);
  const int64_t B = x.size(0), C = x.size(1), D = C / H;
  x = at::cat({get("cls_token").expand({B, 1, C}), x.flatten(2).transpose(1, 2)}, 1);
  x = x + get("pos_embed");
  for (int64_t l = 0; l < L; ++l) {
    const std::string block = "blocks." + std::to_string(l) + ".";
    const auto qkv = linear(norm(x, block + "norm1"), block + "attn.qkv").chunk(3, -1);
    const auto heads = [&](const at::Tensor& t) {
      return t.reshape({B, -1, H, D}).transpose(1, 2);
    };
    const at::Tensor q = heads(qkv[0]), k = heads(qkv[1]), v = heads(qkv[2]);
    const at::Tensor map = (q.matmul(k.transpose(2, 3)) / std::sqrt(double(D))).softmax(-1);
    x = x + linear(map.matmul(v).transpose(1, 2).reshape({B, -1, C}), block + "attn.proj");
    const at::Tensor u = linear(norm(x, block + "norm2"), block + "mlp.fc1");
    x = x + linear(u * 0.5 * (1.0 + (u / std::sqrt(2.0)).erf()), block + "mlp.fc2");
  }
  return linear(norm(x, "norm").select(1, 0), "head");
}

TEST(Vit, IsWhatItsPaperWrites) {
  const auto model = make_image_model("vit", small_vit());
  stir_parameters(*model);
  const at::Tensor pixels = some_pixels(3, 8);
  const torch::NoGradGuard no_grad;
  const at::Tensor expected = reference(*model, pixels, 2, 3);
  EXPECT_GT(expected.std().item<double>(), 0.1);
  // Three layers of float rounding on logits of order 1.
  EXPECT_LE((evaluate(*model, pixels) - expected).abs().max().item<double>(), 1e-5);
  model->to(torch::kDouble);
  EXPECT_LE((evaluate(*model, pixels.to(torch::kDouble)) - expected).abs().max().item<double>(),
            1e-12);
}

TEST(Vit, PatchesWithTheirPositionsHaveNoOrder) {
  for (const char* attention : {"attention.name=softmax", "attention.name=elliptical"}) {
    const auto model = make_image_model("vit", small_vit({attention}));
    stir_parameters(*model);
    model->to(torch::kDouble);
    const at::Tensor pixels = some_pixels(2, 8).to(torch::kDouble);
    const at::Tensor before = evaluate(*model, pixels);
    // Patches 0 1 / 2 3 become 3 0 / 2 1.
    const auto patch = [](const at::Tensor& of, int64_t i) {
      return of.narrow(2, 4 * (i / 2), 4).narrow(3, 4 * (i % 2), 4);
    };
    const std::vector<int64_t> from{3, 0, 2, 1};
    const at::Tensor moved = pixels.clone();
    at::Tensor positions = parameter(*model, "pos_embed");
    const at::Tensor kept = positions.detach().clone();
    const torch::NoGradGuard no_grad;
    for (int64_t i = 0; i < 4; ++i) {
      patch(moved, i).copy_(patch(pixels, from[static_cast<size_t>(i)]));
      positions.select(1, 1 + i).copy_(kept.select(1, 1 + from[static_cast<size_t>(i)]));
    }
    EXPECT_LE((evaluate(*model, moved) - before).abs().max().item<double>(), 1e-12) << attention;
    positions.copy_(kept);
    EXPECT_GE((evaluate(*model, moved) - before).abs().max().item<double>(), 1e-3) << attention;
  }
}

TEST(Vit, BlocksWithoutOutputsAreTheIdentity) {
  const auto model = make_image_model("vit", small_vit({"attention.name=elliptical"}));
  stir_parameters(*model);
  const torch::NoGradGuard no_grad;
  for (auto& item : model->named_parameters()) {
    if (item.key().find(".attn.proj.") != std::string::npos ||
        item.key().find(".mlp.fc2.") != std::string::npos) {
      item.value().zero_();
    }
  }
  const at::Tensor first = parameter(*model, "cls_token") + parameter(*model, "pos_embed");
  const at::Tensor normed =
      at::layer_norm(first.select(1, 0), {8}, parameter(*model, "norm.weight"),
                     parameter(*model, "norm.bias"), 1e-6);
  const at::Tensor expected =
      at::linear(normed, parameter(*model, "head.weight"), parameter(*model, "head.bias"));
  EXPECT_TRUE(
      torch::allclose(evaluate(*model, some_pixels(2, 8)), expected.expand({2, 5}), 0, 1e-6));
}

TEST(Vit, DistilledHeadsAreMeanInEvaluation) {
  const auto model = make_image_model("vit", small_vit({"distilled=true"}));
  stir_parameters(*model);
  const at::Tensor pixels = some_pixels(2, 8);
  const torch::NoGradGuard no_grad;
  auto training = nn::Pass::of_training(RandomKey(0)), evaluation = nn::Pass::of_evaluation();
  const at::Tensor first = model->forward(pixels, training);
  const at::Tensor second = training.outputs.at(kSecondHead);
  const at::Tensor mean = model->forward(pixels, evaluation);
  EXPECT_GT((first - second).abs().max().item<double>(), 0.1);
  EXPECT_TRUE(evaluation.outputs.empty());
  EXPECT_TRUE(at::equal(mean, (first + second) / 2.0));

  // Equal tokens, positions and heads say the same.
  const auto copy = [&](const char* to, const char* from) {
    parameter(*model, to).copy_(parameter(*model, from));
  };
  copy("dist_token", "cls_token");
  copy("head_dist.weight", "head.weight");
  copy("head_dist.bias", "head.bias");
  const at::Tensor positions = parameter(*model, "pos_embed");
  positions.select(1, 1).copy_(positions.select(1, 0));
  const at::Tensor equal = model->forward(pixels, training);
  EXPECT_TRUE(torch::allclose(equal, training.outputs.at(kSecondHead), 0, 1e-6));
}

TEST(Vit, DropPathLeavesOutWholeBranches) {
  const auto model = make_image_model("vit", small_vit({"drop_path=0.5", "num_layers=2"}));
  stir_parameters(*model);
  const torch::NoGradGuard no_grad;
  // The same picture many times: only the second block drops, two branches, so four results.
  const at::Tensor pixels = some_pixels(1, 8).expand({400, 3, 8, 8});
  const auto run = [&](uint64_t seed) {
    nn::Pass pass;
    pass.training = true;
    pass.random = RandomKey(seed);
    return model->forward(pixels, pass);
  };
  const at::Tensor logits = run(1);
  std::map<int64_t, int64_t> counts;
  const at::Tensor rounded = (logits.select(1, 0) * 1e4).round().to(torch::kLong);
  for (int64_t b = 0; b < 400; ++b) ++counts[rounded[b].item<int64_t>()];
  ASSERT_EQ(counts.size(), 4u);
  for (const auto& [value, count] : counts) {
    EXPECT_NEAR(static_cast<double>(count), 100.0, 45.0);  // 5 standard deviations
  }
  EXPECT_TRUE(at::equal(run(1), logits));
  EXPECT_FALSE(at::equal(run(2), logits));
  EXPECT_EQ((evaluate(*model, pixels) - evaluate(*model, pixels)[0]).abs().max().item<double>(),
            0.0);
}

class VitVariants : public ::testing::TestWithParam<support::AttentionVariant> {};

TEST_P(VitVariants, WorkInAPictureModel) {
  std::vector<std::string> assignments = small_vit({"attention.name=" + GetParam().attention});
  for (const std::string& assignment : GetParam().assignments) {
    assignments.push_back("attention." + assignment);
  }
  const auto model = make_image_model("vit", assignments);
  stir_parameters(*model);
  const at::Tensor pixels = some_pixels(2, 8).set_requires_grad(true);
  nn::Pass pass;
  pass.training = true;
  const at::Tensor logits = model->forward(pixels, pass);
  EXPECT_EQ(logits.sizes(), (at::IntArrayRef{2, 5}));
  EXPECT_TRUE(logits.isfinite().all().item<bool>());
  logits.square().sum().backward();
  EXPECT_GT(pixels.grad().abs().max().item<double>(), 0.0);
  for (const auto& item : model->named_parameters()) {
    ASSERT_TRUE(item.value().grad().defined()) << item.key();
    EXPECT_TRUE(item.value().grad().isfinite().all().item<bool>()) << item.key();
  }
  const auto labels = model->labels();
  EXPECT_EQ(std::get<std::string>(labels.at("attention")), GetParam().attention);
  EXPECT_EQ(std::get<std::string>(labels.at("model")), "vit");
  EXPECT_EQ(std::get<bool>(labels.at("leaks_future")), false);
}

INSTANTIATE_TEST_SUITE_P(All,
                         VitVariants,
                         ::testing::ValuesIn(support::attention_variants()),
                         support::VariantName{});

TEST(Vit, EveryOptionHasAnEffect) {
  const std::vector<std::string> base = small_vit({"drop_path=0.1", "image_size=16"});
  const auto output = [](std::vector<std::string> assignments) {
    const auto model = make_image_model("vit", assignments);
    stir_parameters(*model);
    nn::Pass pass;
    pass.training = true;
    return model->forward(some_pixels(4, model->options().image_size), pass).detach();
  };
  const at::Tensor expected = output(base);
  for (const char* assignment : {"image_size=8", "patch_size=8", "dim=4", "num_layers=2",
                                 "num_heads=4", "feedforward_ratio=1", "feedforward.name=relu",
                                 "drop_path=0.6", "distilled=true", "attention.name=kde"}) {
    std::vector<std::string> changed = base;
    changed.emplace_back(assignment);
    EXPECT_FALSE(at::equal(output(changed), expected)) << assignment;
  }
}

TEST(Vit, RefusesWhatDoesNotFit) {
  using test::error_message;
  EXPECT_EQ(error_message<ConfigError>([] { make_image_model("vit", {"image_size=30"}); }),
            "model: image_size must be a multiple of patch_size, got image_size = 30, patch_size = "
            "16");
  EXPECT_EQ(error_message<ConfigError>([] { make_image_model("vit", {"num_heads=5"}); }),
            "attention: dim must be a multiple of num_heads, got dim = 192, num_heads = 5");
  const auto model = make_image_model("vit", small_vit());
  const std::string message =
      error_message<c10::ValueError>([&] { evaluate(*model, some_pixels(2, 12)); });
  EXPECT_NE(message.find("vit: pixels must be (B, 3, 8, 8), got [2, 3, 12, 12]"), std::string::npos)
      << message;
}

TEST(ImageModelTable, IsSortedAndDescribed) {
  std::string before;
  for (const ImageModelEntry& entry : image_model_table()) {
    EXPECT_LT(before, entry.name);
    EXPECT_GT(std::string(entry.description).size(), 10u);
    EXPECT_NE(dynamic_cast<ImageModelOptions*>(entry.make_options().get()), nullptr);
    before = entry.name;
  }
}

TEST(ImageModelTable, SaysWhatItsModelsCanDo) {
  for (const ImageModelEntry& entry : image_model_table()) {
    ChosenOptions chosen = image_model_options(entry.name, {});
    chosen.get<ImageModelOptions>().shrink();
    std::vector<std::string> distilled;
    if (entry.can.distils) {
      distilled.emplace_back("distilled=true");
    } else {
      EXPECT_THROW(apply_overrides({"distilled=true"}, fields_of(chosen)), ConfigError);
    }
    apply_overrides(distilled, fields_of(chosen));
    EXPECT_EQ(chosen.get<ImageModelOptions>().has_second_head(), entry.can.distils) << entry.name;
    const auto model = models::make_image_model(chosen, 5);
    model->initialize(1);
    auto pass = nn::Pass::of_training(RandomKey(1));
    const int64_t side = model->options().image_size;
    EXPECT_EQ(model->forward(some_pixels(2, side), pass).sizes(), (at::IntArrayRef{2, 5}));
    EXPECT_EQ(pass.outputs.contains(kSecondHead), entry.can.distils) << entry.name;
  }
}

TEST(ImageModelTable, MatricesOfBlocksAreCounted) {
  for (const ImageModelEntry& entry : image_model_table()) {
    ChosenOptions chosen = image_model_options(entry.name, {"attention.name=softmax"});
    chosen.get<ImageModelOptions>().shrink();
    const auto model = models::make_image_model(chosen, 5);
    double count = 0;
    for (const auto& item : model->named_parameters()) {
      for (const TokenStage& stage : model->stages()) {
        const bool is_in = item.key().starts_with(stage.prefix) && item.value().dim() >= 2 &&
                           item.key().ends_with("weight");
        if (is_in) count += static_cast<double>(item.value().numel());
      }
    }
    EXPECT_EQ(model->options().num_block_weights(), count) << entry.name;
  }
}

}  // namespace
}  // namespace elliptical::models
