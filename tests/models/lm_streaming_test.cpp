// SPDX-License-Identifier: MIT
//
// A language model fed token by token gives what the whole text gives, or says why it can not.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "elliptical/base/errors.h"
#include "elliptical/models/lm.h"
#include "tests/support/small_lm.h"

namespace elliptical::models {
namespace {

using support::AttentionVariant;
using support::make_small_lm;
using support::small_lm_options;
using support::some_tokens;

at::Tensor stream(Lm& model, const at::Tensor& tokens, int64_t piece) {
  LmStream stream(model);
  std::vector<at::Tensor> hidden;
  for (int64_t begin = 0; begin < tokens.size(1); begin += piece) {
    hidden.push_back(stream.step(tokens.narrow(1, begin, std::min(piece, tokens.size(1) - begin))));
  }
  EXPECT_EQ(stream.num_tokens(), tokens.size(1));
  return at::cat(hidden, 1);
}

std::string refusal(Lm& model) {
  try {
    LmStream stream(model);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

class LmStreaming : public ::testing::TestWithParam<AttentionVariant> {};

TEST_P(LmStreaming, EqualsTheWholeText) {
  const torch::NoGradGuard no_grad;
  const auto model = make_small_lm(GetParam());
  ASSERT_EQ(!model->why_no_streaming(), GetParam().can().streams);
  if (!GetParam().can().streams) {
    EXPECT_EQ(refusal(*model),
              "stream: this model can not read token by token: " + *model->why_no_streaming());
    return;
  }
  // Longer than the window: positions go on.
  const at::Tensor tokens = some_tokens(2, 20);
  nn::Pass pass;
  const at::Tensor whole = model->forward(tokens, pass);
  for (const int64_t piece : {1, 7}) {
    // Hidden states are normed to size 1; sums of float in another order, three layers.
    EXPECT_LE((stream(*model, tokens, piece) - whole).abs().max().item<double>(), 2e-5);
  }
}

INSTANTIATE_TEST_SUITE_P(All,
                         LmStreaming,
                         ::testing::ValuesIn(support::causal_attention_variants()),
                         support::VariantName{});

TEST(LmStreaming, ReversePositionsAreRefused) {
  LmOptions options = small_lm_options(AttentionVariant{.attention = "softmax"}.options());
  options.positions = nn::Positions::kReverse;
  EXPECT_EQ(refusal(*make_small_lm(options)),
            "stream: this model can not read token by token: model.positions = \"reverse\" counts "
            "back from the end of the window, so that each new token moves all tokens before it "
            "(train with model.positions = \"forward\")");
}

TEST(LmStreaming, TheReleasedFormIsRefused) {
  const AttentionVariant released{.attention = "elliptical",
                                  .assignments = {"preset=released-lm", "metric_lookahead=true"}};
  EXPECT_EQ(refusal(*make_small_lm(released)),
            "stream: this model can not read token by token: model.attention.metric.scope = "
            "\"sequence\" reads the whole sequence, so that each new token changes the metric of "
            "all tokens before it (train with metric.scope = \"prefix\")");
}

}  // namespace
}  // namespace elliptical::models
