// SPDX-License-Identifier: MIT
//
// Gradients of the whole language model: against differences, tied on both sides, and good for
// learning.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "elliptical/models/lm.h"
#include "tests/support/one_thread.h"
#include "tests/support/small_lm.h"

namespace elliptical::models {
namespace {

using support::AttentionVariant;
using support::kSmallVocabulary;
using support::make_small_lm;
using support::small_lm_options;
using support::some_tokens;

at::Tensor loss(Lm& model, const at::Tensor& tokens, const at::Tensor& targets, bool training) {
  nn::Pass pass;
  pass.training = training;
  pass.random = RandomKey(3);
  const at::Tensor hidden = model.forward(tokens, pass);
  return model.nll(hidden.flatten(0, 1), targets.flatten()).mean();
}

/// Central differences at a few elements of every parameter, in double, with dropout on.
void expect_gradients_match(Lm& model) {
  const support::OneThread one_thread;
  model.to(torch::kDouble);
  const at::Tensor tokens = some_tokens(2, 6), targets = some_tokens(2, 6, 9);
  loss(model, tokens, targets, true).backward();
  const torch::NoGradGuard no_grad;
  constexpr double kStep = 1e-5;
  for (const auto& item : model.named_parameters()) {
    const at::Tensor parameter = item.value();
    const at::Tensor flat = parameter.view(-1), gradient = parameter.grad().view(-1);
    for (int64_t i = 0; i < flat.numel(); i += 1 + flat.numel() / 4) {
      const double kept = flat[i].item<double>();
      flat[i] = kept + kStep;
      const double above = loss(model, tokens, targets, true).item<double>();
      flat[i] = kept - kStep;
      const double below = loss(model, tokens, targets, true).item<double>();
      flat[i] = kept;
      EXPECT_NEAR(gradient[i].item<double>(), (above - below) / (2 * kStep), 1e-7)
          << item.key() << " element " << i;
    }
  }
}

TEST(LmGradient, MatchesDifferencesSoftmax) {
  LmOptions options = small_lm_options(AttentionVariant{.attention = "softmax"}.options());
  options.dropout = 0.2;
  options.attention_dropout = 0.1;
  expect_gradients_match(*make_small_lm(options));
}

TEST(LmGradient, MatchesDifferencesElliptical) {
  LmOptions options = small_lm_options(
      AttentionVariant{.attention = "elliptical", .assignments = {"metric_gradient=through"}}
          .options());
  options.dropout = 0.2;
  expect_gradients_match(*make_small_lm(options));
}

TEST(LmGradient, TiedTableGetsBothSides) {
  const auto model = make_small_lm(AttentionVariant{.attention = "elliptical"});
  const at::Tensor tokens = some_tokens(2, 12), targets = some_tokens(2, 12, 9).flatten();
  const at::Tensor table = model->named_parameters()["embed.weight"];
  nn::Pass pass;
  const at::Tensor hidden = model->forward(tokens, pass).flatten(0, 1);

  // Output side alone: the hidden states are constants.
  model->nll(hidden.detach(), targets).mean().backward();
  const at::Tensor output_side = table.grad().clone();
  // Input side alone: the gradient of the hidden states, sent back through the body.
  const at::Tensor leaf = hidden.detach().requires_grad_();
  table.mutable_grad().zero_();
  const at::Tensor d_hidden = torch::autograd::grad({model->nll(leaf, targets).mean()}, {leaf})[0];
  hidden.backward(d_hidden);
  const at::Tensor input_side = table.grad().clone();

  table.mutable_grad().zero_();
  loss(*model, tokens, targets, false).backward();
  EXPECT_GT(input_side.abs().max().item<double>(), 0.0);
  EXPECT_GT(output_side.abs().max().item<double>(), 0.0);
  // Float sums in another order.
  EXPECT_TRUE(torch::allclose(table.grad(), input_side + output_side, 1e-4, 1e-6));
}

class LmOverfit : public ::testing::TestWithParam<AttentionVariant> {};

TEST_P(LmOverfit, OneBatch) {
  const support::OneThread one_thread;
  const auto model = make_small_lm(GetParam());
  const at::Tensor tokens = some_tokens(2, 12), targets = some_tokens(2, 12, 9);
  torch::optim::Adam adam(model->parameters(), torch::optim::AdamOptions(1e-2));
  double last = 0.0;
  for (int step = 0; step < 150; ++step) {
    adam.zero_grad();
    const at::Tensor value = loss(*model, tokens, targets, true);
    value.backward();
    adam.step();
    last = value.item<double>();
  }
  EXPECT_LT(last, 0.05);  // from log(50) = 3.9
}

INSTANTIATE_TEST_SUITE_P(
    All,
    LmOverfit,
    ::testing::Values(AttentionVariant{.name = "softmax", .attention = "softmax"},
                      AttentionVariant{.name = "elliptical", .attention = "elliptical"}),
    support::VariantName{});

}  // namespace
}  // namespace elliptical::models
