// SPDX-License-Identifier: MIT
#include "elliptical/tasks/generate.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <limits>

#include "elliptical/base/errors.h"
#include "tests/support/small_task.h"

namespace elliptical::tasks {
namespace {

using support::small_task_options;

std::vector<int32_t> generated(models::Lm& model,
                               const std::vector<int32_t>& prompt,
                               const GenerateOptions& options) {
  std::vector<int32_t> tokens;
  generate(model, prompt, options, [&](int32_t token) {
    tokens.push_back(token);
    return true;
  });
  return tokens;
}

TEST(Generate, PromptIsReadAsText) {
  const LanguageModelTask task(small_task_options(), 1);
  const data::Vocabulary& words = task.corpus().vocabulary();
  Prompt prompt = read_prompt("the zyzzyva of", words);
  EXPECT_EQ(prompt.tokens, (std::vector<int32_t>{words.id("the"), words.unk(), words.id("of")}));
  EXPECT_EQ(prompt.unknown, (std::vector<std::string>{"zyzzyva"}));
  EXPECT_EQ(read_prompt("", words).tokens, (std::vector<int32_t>{data::Vocabulary::kEos}));
  EXPECT_EQ(read_prompt("the\n", words).tokens,
            (std::vector<int32_t>{words.id("the"), data::Vocabulary::kEos}));
  EXPECT_THROW(read_prompt("\xff", words), DataError);
}

TEST(Generate, GreedyIsTheLikeliestWordOfTheWholeText) {
  const torch::NoGradGuard no_grad;
  LanguageModelTask task(small_task_options(), 1);
  const std::vector<int32_t> prompt = read_prompt("the old", task.corpus().vocabulary()).tokens;
  const std::vector<int32_t> tokens =
      generated(task.lm(), prompt, {.num_tokens = 12, .temperature = 0.0});
  ASSERT_EQ(tokens.size(), 12u);
  std::vector<int64_t> text(prompt.begin(), prompt.end());
  for (const int32_t token : tokens) {
    nn::Pass pass;
    const at::Tensor hidden =
        task.lm().forward(torch::tensor(text, torch::kLong).unsqueeze(0), pass);
    const at::Tensor last = task.lm().log_probabilities(hidden.select(1, hidden.size(1) - 1));
    // The likeliest up to the rounding of another order of sums.
    EXPECT_GE(last[0][token].item<double>(), last.max().item<double>() - 1e-5);
    text.push_back(token);
  }
}

TEST(Generate, N1WhatIsNoProbabilityDrawsNoWord) {
  const double infinity = std::numeric_limits<double>::infinity();
  // An impossible word is none of that.
  EXPECT_EQ(draw_token(torch::tensor({-infinity, 0.0}), {}, 0.5), 1);
  for (const at::Tensor& broken :
       {torch::tensor({-1.0, std::nan(""), -2.0}), torch::tensor({-infinity, -infinity}),
        torch::tensor({0.0, infinity})}) {
    for (const double temperature : {0.0, 1.0}) {
      for (const int64_t top_k : {0, 1}) {
        EXPECT_THROW(draw_token(broken, {.temperature = temperature, .top_k = top_k}, 0.5),
                     RunError);
      }
    }
  }
}

TEST(Generate, RepeatsWithTheSeed) {
  LanguageModelTask task(small_task_options(), 1);
  const GenerateOptions options{.num_tokens = 20, .seed = 4};
  const std::vector<int32_t> tokens = generated(task.lm(), {0}, options);
  EXPECT_EQ(tokens, generated(task.lm(), {0}, options));
  EXPECT_NE(tokens, generated(task.lm(), {0}, {.num_tokens = 20, .seed = 5}));
}

TEST(Generate, EndsWhenToldTo) {
  LanguageModelTask task(small_task_options(), 1);
  int num_tokens = 0;
  generate(task.lm(), {0}, {.num_tokens = 20}, [&](int32_t) { return ++num_tokens < 3; });
  EXPECT_EQ(num_tokens, 3);
}

TEST(Generate, DrawsByProbability) {
  const at::Tensor log_p = torch::tensor({0.5, 0.2, 0.3}).log();
  EXPECT_EQ(draw_token(log_p, {}, 0.0), 0);
  EXPECT_EQ(draw_token(log_p, {}, 0.49), 0);
  EXPECT_EQ(draw_token(log_p, {}, 0.51), 2);
  EXPECT_EQ(draw_token(log_p, {}, 0.79), 2);
  EXPECT_EQ(draw_token(log_p, {}, 0.81), 1);
  EXPECT_EQ(draw_token(log_p, {}, 0.9999999), 1);
  EXPECT_EQ(draw_token(log_p, {.top_k = 2}, 0.9999999), 2);
  EXPECT_EQ(draw_token(log_p, {.temperature = 0.0}, 0.9), 0);
  EXPECT_EQ(draw_token(log_p, {.temperature = 1e6}, 0.34), 2) << "nearly uniform";
}

TEST(Generate, RefusesWhatMakesNoSense) {
  LanguageModelTask task(small_task_options(), 1);
  const auto refusal = [](LanguageModelTask& of, const GenerateOptions& options) {
    try {
      generated(of.lm(), {0}, options);
    } catch (const std::runtime_error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(refusal(task, {.temperature = -1.0}),
            "generate: temperature must be finite and not negative, got -1.000000");
  EXPECT_EQ(refusal(task, {.top_k = -2}),
            "generate: top_k and the number of tokens must not be negative, got -2");
  LanguageModelTask released(
      small_task_options({.attention = "elliptical",
                          .assignments = {"preset=released-lm", "metric_lookahead=true"}}),
      1);
  EXPECT_EQ(refusal(released, {}),
            "stream: this model can not read token by token: " + *released.lm().why_no_streaming());
}

}  // namespace
}  // namespace elliptical::tasks
