// SPDX-License-Identifier: MIT
//
// A task whose sequences are of different lengths: what stands behind the end of one is padding, of
// which the model hears through its batch. The task is a toy; its layers are those of the models.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "elliptical/nn/pre_norm_block.h"
#include "elliptical/tasks/task.h"
#include "tests/support/attention_variants.h"
#include "tests/support/passes.h"

namespace elliptical::tasks {
namespace {

using support::AttentionVariant;

constexpr int64_t kWidth = 8, kTokens = 7, kWords = 11;

/// Two blocks over embedded words, and the mean over those that are real.
struct ToyEncoder : torch::nn::Module {
  explicit ToyEncoder(const AttentionVariant& variant) {
    torch::manual_seed(1);
    words = register_parameter("words", torch::randn({kWords, kWidth}));
    for (int64_t layer = 0; layer < 2; ++layer) {
      const auto attention = nn::make_attention(
          variant.options(),
          {.dim = kWidth, .num_heads = 2, .layer = layer, .num_layers = 2, .window = kTokens});
      const auto mlp = nn::make_feed_forward(ChosenOptions(nn::feed_forward_choices(), "gelu"),
                                             {.dim = kWidth, .hidden_dim = kWidth});
      blocks.push_back(register_module(
          "block" + std::to_string(layer),
          std::make_shared<nn::PreNormBlock>(attention, mlp, kWidth, nn::PreNormBlock::Options{})));
    }
    const torch::NoGradGuard no_grad;
    for (auto& item : named_parameters()) {
      if (item.key().ends_with("bias")) {
        item.value().zero_();
      } else if (item.key().find("norm") != std::string::npos) {
        item.value().fill_(1.0);
      } else if (item.value().dim() == 2) {
        item.value().normal_(0.0, 0.5);
      }
    }
  }

  at::Tensor forward(const at::Tensor& tokens, nn::Pass& pass) const {
    pass.begin_layers();
    const at::Tensor x =
        nn::run_blocks(
            blocks, words.index_select(0, tokens.flatten()).view({tokens.size(0), kTokens, kWidth}),
            nullptr, pass)
            .x;
    if (!pass.key_lengths) return x.mean(1);
    const at::Tensor real = at::arange(kTokens) < pass.key_lengths->unsqueeze(1);
    return (x * real.unsqueeze(2)).sum(1) / pass.key_lengths->unsqueeze(1);
  }

  at::Tensor words;
  std::vector<std::shared_ptr<nn::PreNormBlock>> blocks;
};

class ToyTexts : public Task {
 public:
  explicit ToyTexts(const AttentionVariant& variant) : model_(variant) {}

  torch::nn::Module& model() override { return model_; }
  const char* unit() const override { return "texts"; }
  int64_t num_train_units() const override { return 2; }
  std::map<std::string, std::string> data_fingerprint() const override { return {}; }
  std::map<std::string, LabelValue> labels() const override { return {}; }
  /// Two texts of 7 and 4 words, then `filler`.
  static Batch texts(int64_t filler) {
    Batch batch{.input = torch::arange(2 * kTokens).remainder(kWords).view({2, kTokens}),
                .lengths = torch::tensor({kTokens, kTokens - 3}),
                .target = torch::tensor({1, 0}),
                .num_units = 2};
    batch.input[1].narrow(0, kTokens - 3, 3).fill_(filler);
    return batch;
  }
  Batch train_batch(int64_t) const override { return texts(0); }
  Loss loss(const Batch& batch, nn::Pass& pass) override {
    return with_auxiliary(at::cross_entropy_loss(forward(batch, pass), batch.target), pass);
  }
  std::unique_ptr<EvalSet> eval_set(Options&) override { return nullptr; }
  std::unique_ptr<Options> make_eval_options() const override { return nullptr; }
  std::vector<Record> metrics(const Scores&) const override { return {}; }

 protected:
  at::Tensor run(const Batch& batch, nn::Pass& pass) override {
    return model_.forward(batch.input, pass);
  }

 private:
  ToyEncoder model_;
};

at::Tensor say(ToyTexts& task, const Batch& batch) {
  auto pass = nn::Pass::of_evaluation();
  return task.forward(batch, pass);
}

class Lengths : public ::testing::TestWithParam<AttentionVariant> {};

TEST_P(Lengths, WhatStandsBehindTheEndIsNotRead) {
  ToyTexts task(GetParam());
  EXPECT_TRUE(at::equal(say(task, ToyTexts::texts(0)), say(task, ToyTexts::texts(5))));
  const double loss = support::loss_of(task, ToyTexts::texts(0), 1).item<double>();
  EXPECT_EQ(support::loss_of(task, ToyTexts::texts(5), 1).item<double>(), loss);
  // Without lengths it is read like any other word.
  Batch whole = ToyTexts::texts(0), other = ToyTexts::texts(5);
  whole.lengths = other.lengths = at::Tensor();
  EXPECT_FALSE(at::equal(say(task, whole), say(task, other)));
}

TEST_P(Lengths, APassForgetsThoseOfTheBatchBefore) {
  ToyTexts task(GetParam());
  Batch whole = ToyTexts::texts(5);
  auto used = nn::Pass::of_evaluation();
  task.forward(whole, used);
  whole.lengths = at::Tensor();
  EXPECT_TRUE(at::equal(task.forward(whole, used), say(task, whole)));
}

std::vector<AttentionVariant> variants_with_padding() {
  std::vector<AttentionVariant> variants = support::attention_variants();
  std::erase_if(variants, [](const auto& variant) { return !variant.can().padding; });
  return variants;
}

INSTANTIATE_TEST_SUITE_P(All,
                         Lengths,
                         ::testing::ValuesIn(variants_with_padding()),
                         support::VariantName{});

}  // namespace
}  // namespace elliptical::tasks
