// SPDX-License-Identifier: MIT
//
// What every feed-forward layer of the table owes, alone and in both kinds of block.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "elliptical/nn/feedforward/feed_forward.h"
#include "elliptical/nn/post_norm_block.h"
#include "elliptical/nn/pre_norm_block.h"
#include "tests/support/attention_stack.h"
#include "tests/support/gradcheck.h"

namespace elliptical::nn {
namespace {

using support::wave;

constexpr int64_t kWidth = 4, kHidden = 6;

std::shared_ptr<FeedForward> feed_forward(const std::string& name, double dropout = 0.0) {
  const ChosenOptions chosen(feed_forward_choices(), name);
  const auto layer =
      make_feed_forward(chosen, {.dim = kWidth, .hidden_dim = kHidden, .dropout = dropout});
  const torch::NoGradGuard no_grad;
  double frequency = 0.4;
  for (at::Tensor& parameter : layer->parameters()) {
    parameter.copy_(wave(parameter.sizes(), frequency += 0.1));
  }
  layer->to(torch::kDouble);
  return layer;
}

/// The branch, as a block adds it.
at::Tensor branch(FeedForward& layer, const at::Tensor& x, Pass pass = {}) {
  const at::Tensor y = layer.forward(x, pass), bias = layer.out_bias();
  return bias.defined() ? y + bias : y;
}

at::Tensor some_tokens() { return wave({2, 3, kWidth}).to(torch::kDouble); }

class FeedForwardTable : public ::testing::TestWithParam<std::string> {};

TEST_P(FeedForwardTable, IsWhatItsFormulaSays) {
  const auto layer = feed_forward(GetParam());
  const auto p = layer->named_parameters();
  const at::Tensor z = some_tokens().matmul(p["fc1.weight"].t()) + p["fc1.bias"];
  const at::Tensor a =
      GetParam() == "relu" ? at::relu(z) : z * (1 + at::erf(z / std::sqrt(2.0))) / 2;
  const at::Tensor expected = a.matmul(p["fc2.weight"].t()) + p["fc2.bias"];
  EXPECT_LE((branch(*layer, some_tokens()) - expected).abs().max().item<double>(), 1e-12);
}

TEST_P(FeedForwardTable, GradientsMatchDifferences) {
  const auto layer = feed_forward(GetParam());
  EXPECT_TRUE(support::gradients_match(
      [&](const std::vector<at::Tensor>& in) -> std::vector<at::Tensor> {
        return {branch(*layer, in[0])};
      },
      {some_tokens()}));
}

TEST_P(FeedForwardTable, DropoutFollowsTheKeyAndIsOffOutsideTraining) {
  const auto layer = feed_forward(GetParam(), 0.5), without = feed_forward(GetParam());
  const auto trained = [&](uint64_t seed) {
    return branch(*layer, some_tokens(), Pass::of_training(RandomKey(seed)));
  };
  EXPECT_TRUE(at::equal(trained(1), trained(1)));
  EXPECT_FALSE(at::equal(trained(1), trained(2)));
  EXPECT_TRUE(at::equal(branch(*layer, some_tokens()), branch(*without, some_tokens())));
  EXPECT_FALSE(at::equal(trained(1), branch(*layer, some_tokens())));
}

TEST_P(FeedForwardTable, StandsInBothKindsOfBlock) {
  const ChosenOptions softmax(attention_choices(), "softmax");
  const AttentionShape shape{.dim = kWidth, .num_heads = 2};
  const auto attention = [&] { return make_attention(softmax, shape); };
  const auto norm = [](const at::Tensor& x, double eps) {
    return at::layer_norm(x, {kWidth}, {}, {}, eps);
  };
  const auto prepare = [](torch::nn::Module& block) {
    const torch::NoGradGuard no_grad;
    for (auto& item : block.named_parameters()) {
      const bool is_of_norm = item.key().rfind("norm", 0) == 0;
      if (item.key().rfind("attn", 0) == 0) item.value().zero_();  // the feed-forward branch alone
      if (is_of_norm) item.value().fill_(item.key().ends_with("weight") ? 1.0 : 0.0);
    }
    block.to(torch::kDouble);
  };
  const auto layer = feed_forward(GetParam());
  PostNormBlock post(attention(), layer, kWidth, 0.0);
  prepare(post);
  Pass pass;
  const at::Tensor middle = norm(some_tokens(), 1e-5);
  EXPECT_LE((post.forward(some_tokens(), pass) - norm(middle + branch(*layer, middle), 1e-5))
                .abs()
                .max()
                .item<double>(),
            1e-10);

  const auto pre =
      std::make_shared<PreNormBlock>(attention(), layer, kWidth, PreNormBlock::Options{});
  prepare(*pre);
  const at::Tensor out = run_blocks({pre}, some_tokens(), nullptr, pass).x;
  const at::Tensor expected = some_tokens() + branch(*layer, norm(some_tokens(), kPreNormEps));
  EXPECT_LE((out - expected).abs().max().item<double>(), 1e-10);
}

std::vector<std::string> feed_forward_names() {
  std::vector<std::string> all;
  for (const FeedForwardEntry& entry : feed_forward_table()) all.emplace_back(entry.name);
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, FeedForwardTable, ::testing::ValuesIn(feed_forward_names()));

TEST(FeedForwards, AreSortedAndDescribed) {
  std::string before;
  for (const FeedForwardEntry& entry : feed_forward_table()) {
    EXPECT_LT(before, entry.name);
    EXPECT_GT(std::string(entry.description).size(), 10u);
    before = entry.name;
  }
}

TEST(PassLosses, TermsOfOneNameAddUp) {
  Pass pass;
  pass.add_loss("balance", at::full({}, 1.5));
  pass.add_loss("balance", at::full({}, 0.5));
  pass.add_loss("z", at::full({}, 3.0));
  ASSERT_EQ(pass.auxiliary_losses.size(), 2);
  EXPECT_EQ(pass.auxiliary_losses.at("balance").item<double>(), 2.0);
  EXPECT_EQ(pass.auxiliary_losses.at("z").item<double>(), 3.0);
}

}  // namespace
}  // namespace elliptical::nn
