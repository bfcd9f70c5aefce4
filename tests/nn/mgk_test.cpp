// SPDX-License-Identifier: MIT
//
// The mixture of Gaussian keys against plain loops, its limits, its parameters and what is refused.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

#include "elliptical/base/errors.h"
#include "elliptical/nn/attention/mgk.h"
#include "elliptical/nn/attention/softmax.h"
#include "tests/support/attention_stack.h"
#include "tests/support/attention_variants.h"
#include "tests/support/error_message.h"
#include "tests/support/gradcheck.h"

namespace elliptical::nn::mgk_test {
namespace {

using support::AttentionStack;
using support::AttentionVariant;
using support::wave;

constexpr int64_t N = 7, D = 4;
constexpr AttentionShape kShape{
    .dim = D, .num_heads = 1, .layer = 1, .num_layers = 2, .window = 16};

double number(const at::Tensor& t) { return t.item<double>(); }
double difference(const at::Tensor& a, const at::Tensor& b) { return number((a - b).abs().max()); }

struct Problem {
  at::Tensor q = wave({1, 1, N, D}).to(torch::kDouble);
  at::Tensor k = wave({1, 1, N, D}, 0.3).to(torch::kDouble);
  at::Tensor second_k = wave({1, 1, N, D}, 0.5).to(torch::kDouble);
  at::Tensor v = wave({1, 1, N, D}, 0.9).to(torch::kDouble);
  at::Tensor pi = wave({2, 1, 16}, 1.1).to(torch::kDouble).abs();

  HeadMixer::Heads heads(at::ScalarType type = at::kDouble) const {
    return {q.to(type), k.to(type), v.to(type), v.to(type), second_k.to(type)};
  }
};

void set(HeadMixer& mixer, const std::string& name, const at::Tensor& value) {
  const torch::NoGradGuard no_grad;
  mixer.to(value.scalar_type());
  mixer.named_parameters()[name].copy_(value);
}

/// By the definition; `metric` (N, D) is 1 where there is none.
at::Tensor loops(const Problem& p,
                 const MgkOptions& options,
                 bool is_causal,
                 const at::Tensor& metric = torch::ones({N, D}, torch::kDouble)) {
  at::Tensor out = torch::zeros({1, 1, N, D}, torch::kDouble);
  for (int64_t i = 0; i < N; ++i) {
    double sum = 0;
    for (int64_t j = 0; j < (is_causal ? i + 1 : N); ++j) {
      double weight = 0;
      for (int64_t r = 0; r < 2; ++r) {
        const at::Tensor key = (r == 0 ? p.k : p.second_k)[0][0][j];
        const double d2 = number((metric[i] * (p.q[0][0][i] - key).square()).sum());
        const double c = options.bandwidths[static_cast<size_t>(r)] / std::sqrt(D);
        const double component = std::exp(-c * d2);
        weight = options.hard ? std::max(weight, component)
                              : weight + number(p.pi[r][0][j].clamp(0, 1)) * component;
      }
      sum += weight;
      out[0][0][i] += weight * p.v[0][0][j];
    }
    out[0][0][i] /= sum + (options.hard ? 0.0 : options.epsilon);
  }
  return out;
}

TEST(Mgk, AgreesWithLoops) {
  const Problem p;
  for (const bool is_causal : {false, true}) {
    for (const bool hard : {false, true}) {
      MgkOptions options;
      options.hard = hard;
      options.epsilon = 0.2;  // large enough to be seen
      const auto mixer = make_mgk_mixer(options, kShape);
      Pass pass;
      pass.is_causal = is_causal;
      const at::Tensor expected = loops(p, options, is_causal);
      for (const auto type : {torch::kDouble, torch::kFloat}) {
        if (!hard) set(*mixer, "pi", p.pi.to(type));
        EXPECT_LE(difference(mixer->mix(p.heads(type), pass, nullptr), expected),
                  type == torch::kDouble ? 1e-10 : 1e-5);
      }
    }
  }
}

TEST(Mgk, AMetricForEachQueryIsExact) {
  const Problem p;
  for (const bool is_causal : {false, true}) {  // one row, and a row for each query
    MgkOptions options;
    options.is_elliptical = true;
    AttentionShape shape = kShape;
    shape.is_causal = is_causal;
    const auto mixer = make_mgk_mixer(options, shape);
    set(*mixer, "pi", p.pi);
    Pass pass;
    Trace trace;
    pass.trace = &trace;
    pass.is_causal = is_causal;
    pass.previous_q = p.q;
    pass.previous_v = wave({1, 1, N, D}, 0.4).to(torch::kDouble);
    const at::Tensor out = mixer->mix(p.heads(), pass, nullptr);
    const at::Tensor metric = trace.tensors.at("layers.0.metric");
    ASSERT_EQ(metric.size(2), is_causal ? N : 1);
    EXPECT_LT(number(metric.min()), 0.9);
    EXPECT_LE(difference(out, loops(p, options, is_causal, metric[0][0].expand({N, D}))), 1e-10);
    EXPECT_LE(difference(trace.tensors.at("layers.0.attention").matmul(p.v), out), 1e-10);
  }
}

TEST(Mgk, OneComponentIsSoftmaxOfDistances) {
  Problem p;
  p.second_k = p.k;
  p.pi = torch::full({2, 1, 16}, 0.3, torch::kDouble);
  // With keys of one length and c = 1 / (2 sqrt(D)) that is plain attention.
  p.k = p.second_k = p.k / p.k.norm(2, {3}, true);
  MgkOptions options;
  options.bandwidths = {0.5, 0.5};
  options.epsilon = 0;
  const auto mixer = make_mgk_mixer(options, kShape);
  set(*mixer, "pi", p.pi);
  const Pass pass;
  EXPECT_LE(difference(mixer->mix(p.heads(), pass, nullptr),
                       make_softmax_mixer({}, kShape)->mix(p.heads(), pass, nullptr)),
            1e-12);
}

TEST(Mgk, WeightZeroLeavesTheOtherKey) {
  Problem p;
  p.pi[1].zero_();
  MgkOptions options;
  const auto mixer = make_mgk_mixer(options, kShape);
  set(*mixer, "pi", p.pi);
  const Pass pass;
  const at::Tensor out = mixer->mix(p.heads(), pass, nullptr);
  p.second_k = p.second_k * 3;
  // A weight is at least 1e-12 for its logarithm's sake.
  EXPECT_LE(difference(mixer->mix(p.heads(), pass, nullptr), out), 1e-11);
}

TEST(Mgk, WeightsAreUsedBetweenZeroAndOne) {
  Problem p;
  p.pi = torch::full({2, 1, 16}, 0.4, torch::kDouble);
  p.pi[0][0][1] = 1.7;
  p.pi[1][0][2] = -0.2;
  const auto mixer = make_mgk_mixer({}, kShape);
  set(*mixer, "pi", p.pi);
  const Pass pass;
  mixer->mix(p.heads(), pass, nullptr).square().sum().backward();
  const at::Tensor gradient = mixer->named_parameters()["pi"].grad();
  EXPECT_EQ(number(gradient[0][0][1]), 0.0);
  EXPECT_EQ(number(gradient[1][0][2]), 0.0);
  EXPECT_NE(number(gradient[0][0][0]), 0.0);
  EXPECT_LE(difference(mixer->mix(p.heads(), pass, nullptr), loops(p, {}, false)), 1e-10);
}

TEST(Mgk, GradientsMatchDifferences) {
  const Problem p;
  for (const bool shifted : {false, true}) {
    MgkOptions options;
    options.shifted_keys = shifted;
    options.epsilon = 0.1;
    const auto mixer = make_mgk_mixer(options, kShape);
    mixer->to(torch::kDouble);
    Pass pass;
    pass.is_causal = true;
    EXPECT_TRUE(support::gradients_match(
        [&](const std::vector<at::Tensor>& in) -> std::vector<at::Tensor> {
          return {mixer->mix({in[0], in[1], in[2], in[2], in[3]}, pass, nullptr)};
        },
        {p.q, p.k, p.v, p.second_k}));
  }
}

TEST(Mgk, DropoutDropsTokens) {
  // The same mask for both keys of a token: a row of weights keeps its mean, and zeros are whole.
  Problem p;
  p.v = torch::eye(N, torch::kDouble).view({1, 1, N, N});
  AttentionShape shape = kShape;
  shape.dropout = 0.5;
  const auto mixer = make_mgk_mixer({}, shape);
  mixer->to(torch::kDouble);
  Pass pass;
  const at::Tensor plain = mixer->mix(p.heads(), pass, nullptr);
  pass.training = true;
  const at::Tensor dropped = mixer->mix(p.heads(), pass, nullptr);
  const at::Tensor kept = dropped != 0;
  EXPECT_GT(number(kept.sum()), 10);
  EXPECT_LT(number(kept.sum()), 40);
  EXPECT_LE(difference(dropped, torch::where(kept, 2 * plain, 0.0)), 1e-12);
}

TEST(Mgk, EachOptionHasAnEffect) {
  const auto output = [](const std::vector<std::string>& assignments) {
    const AttentionVariant variant{.attention = "mgk", .assignments = assignments};
    return AttentionStack(variant.options(), {.dim = 12, .num_heads = 3, .window = 20})
        .forward(wave({2, 20, 12}));
  };
  const at::Tensor reference = output({});
  for (const char* assignment : {"keys=shifted", "mixture=hard", "bandwidths=[0.5,0.5]",
                                 "epsilon=0.1", "distance=elliptical"}) {
    EXPECT_FALSE(at::equal(output({assignment}), reference)) << assignment;
  }
}

TEST(Mgk, RefusesWhatItCanNotDo) {
  const auto refusal = [](const std::vector<std::string>& assignments) {
    AttentionVariant variant{.attention = "mgk", .assignments = assignments};
    return test::error_message<ConfigError>(
        [&] { AttentionStack(variant.options(), {.dim = 12, .num_heads = 3}); });
  };
  EXPECT_EQ(refusal({"window=8", "bandwidths=[1]"}),
            "mgk attention: bandwidths must be two numbers, got 1");
  EXPECT_EQ(refusal({}),
            "mgk attention: window must be given, got none: the model around it has no fixed "
            "number of tokens (set window to the longest sequence, or mixture = \"hard\")");
  const AttentionVariant variant{.attention = "mgk", .assignments = {"window=8"}};
  EXPECT_EQ(test::error_message<ConfigError>([&] {
              AttentionStack(variant.options(), {.dim = 12, .num_heads = 3, .window = 9});
            }),
            "mgk attention: window must be at least the model's 9 tokens, got 8");
  const AttentionStack stack(variant.options(), {.dim = 12, .num_heads = 3});
  try {
    stack.forward(wave({1, 9, 12}));
    FAIL();
  } catch (const c10::ValueError& error) {
    EXPECT_STREQ(error.what_without_backtrace(),
                 "mgk attention: there must be at most 8 tokens, the length of the learned mixture "
                 "weights, got 9 (train with a larger model.attention.window)");
  }
}

}  // namespace
}  // namespace elliptical::nn::mgk_test
