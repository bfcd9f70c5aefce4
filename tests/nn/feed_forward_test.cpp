// SPDX-License-Identifier: MIT
//
// What every feed-forward layer of the table owes, alone and in both kinds of block.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "elliptical/base/name_table.h"
#include "elliptical/nn/feedforward/channel_attention.h"
#include "elliptical/nn/feedforward/conv_mlp.h"
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

/// Of matrices and kernels.
double num_weights(const torch::nn::Module& layer) {
  double count = 0;
  for (const at::Tensor& parameter : layer.parameters()) {
    const bool is_kernel = parameter.dim() == 2 || parameter.dim() == 4;
    if (is_kernel) count += static_cast<double>(parameter.numel());
  }
  return count;
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

TEST_P(FeedForwardTable, SaysWhatItCanDoAndCosts) {
  const FeedForwardEntry& entry = *find_entry(feed_forward_table(), GetParam());
  const auto layer = feed_forward(GetParam());
  EXPECT_EQ(layer->is_tokenwise(), entry.can.tokenwise);
  EXPECT_EQ(layer->why_no_streaming().has_value(), !entry.can.tokenwise);
  at::Tensor changed = some_tokens();
  changed.select(1, 1).add_(1.0);
  const at::Tensor before = branch(*layer, some_tokens()), after = branch(*layer, changed);
  EXPECT_EQ(at::equal(before.select(1, 0), after.select(1, 0)), entry.can.tokenwise);
  EXPECT_FALSE(at::equal(before.select(1, 1), after.select(1, 1)));

  const ChosenOptions chosen(feed_forward_choices(), GetParam());
  const FeedForwardCost one =
      feed_forward_cost(chosen, {.dim = kWidth, .hidden_dim = kHidden, .num_layers = 1});
  EXPECT_EQ(one.num_weights, num_weights(*layer));
  EXPECT_GE(one.num_weights, one.products) << "weights that no token meets are only weights";
  EXPECT_GT(one.kept, 0);
  const FeedForwardCost three =
      feed_forward_cost(chosen, {.dim = kWidth, .hidden_dim = kHidden, .num_layers = 3});
  EXPECT_EQ(three.num_weights, 3 * one.num_weights);
  EXPECT_EQ(three.products, 3 * one.products);
  EXPECT_EQ(three.kept, 3 * one.kept);
  EXPECT_EQ(three.widest, one.widest);
}

TEST_P(FeedForwardTable, DropoutFollowsTheKeyAndIsOffOutsideTraining) {
  if (!find_entry(feed_forward_table(), GetParam())->can.drops) return;
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

TEST(FeedForwards, OfOneModelSayWhatTheyCost) {
  const FeedForwardShape shape{.dim = kWidth, .hidden_dim = kHidden};
  const ConvMlp conv(kWidth, kHidden, 2);
  EXPECT_EQ(ConvMlp::cost(shape).num_weights, num_weights(conv));
  const ChannelAttention channels(kWidth, 2, kHidden, 2);
  EXPECT_EQ(ChannelAttention::cost(shape).num_weights, num_weights(channels));
}

/// The mean of all tokens, beside each of them.
struct MeanOfTokens : FeedForward {
  at::Tensor forward(const at::Tensor& x, Pass&) override {
    return at::sin(x + 2 * x.mean(1, /*keepdim=*/true));
  }
  bool is_tokenwise() const override { return false; }
};

// A layer that reads other tokens, as one that routes them does, has all of them in both kinds of
// block, also where only some results are wanted.
TEST(FeedForwards, ThatReadOtherTokensAreHandedAllOfThem) {
  const auto mean = std::make_shared<MeanOfTokens>();
  EXPECT_EQ(mean->why_no_streaming(),
            "name is of a layer that reads several tokens at once (train with another one)");
  const ChosenOptions softmax(attention_choices(), "softmax");
  const AttentionShape shape{.dim = kWidth, .num_heads = 2};
  const auto prepare = [](torch::nn::Module& block) {
    const torch::NoGradGuard no_grad;
    double frequency = 0.4;
    for (at::Tensor& parameter : block.parameters()) {
      parameter.copy_(wave(parameter.sizes(), frequency += 0.1));
    }
  };
  const at::Tensor x = wave({2, 5, kWidth});
  PostNormBlock post(make_attention(softmax, shape), mean, kWidth, 0.0);
  prepare(post);
  Pass pass;
  EXPECT_TRUE(at::equal(post.forward(x, pass, 2), post.forward(x, pass).narrow(1, 3, 2)));

  const auto pre = std::make_shared<PreNormBlock>(make_attention(softmax, shape), mean, kWidth,
                                                  PreNormBlock::Options{});
  prepare(*pre);
  Norm last(kWidth);
  prepare(last);
  const ResidualStream all = run_blocks({pre}, x, &last, pass),
                       kept = run_blocks({pre}, x, &last, pass, 2);
  EXPECT_TRUE(at::equal(kept.x, all.x.narrow(1, 0, 2)));
  EXPECT_TRUE(at::equal(kept.normed, all.normed.narrow(1, 0, 2)));
}

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
