// SPDX-License-Identifier: MIT
//
// Kernel density attention against loops over its definition, and what it is equal to.
#include "elliptical/nn/attention/kde.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

#include "elliptical/base/errors.h"
#include "elliptical/nn/attention/kernel_density.h"
#include "elliptical/nn/attention/softmax.h"
#include "tests/support/attention_stack.h"
#include "tests/support/attention_variants.h"
#include "tests/support/error_message.h"
#include "tests/support/golden_heads.h"
#include "tests/support/gradcheck.h"
#include "tests/support/kernel_regression_loops.h"
#include "tests/support/max_difference.h"

namespace elliptical::nn::kde_test {
namespace {

using support::KernelLoops;
using support::max_difference;
using support::wave;

constexpr int64_t B = 2, H = 3, N = 11, D = 4;
constexpr AttentionShape kShape{.dim = H * D, .num_heads = H};

struct Case {
  at::Tensor q = wave({B, H, N, D}), k = wave({B, H, N, D}, 0.31), v = wave({B, H, N, D}, 1.3);
  Pass pass;

  HeadMixer::Heads heads(at::ScalarType type) const {
    return {q.to(type), k.to(type), v.to(type), v.to(type)};
  }
};

/// Float sums of 11 terms; double to its last digits.
double tolerance(at::ScalarType type) { return type == torch::kDouble ? 1e-10 : 1e-5; }

TEST(Kde, Golden) {
  support::expect_golden(*make_kde_mixer({}, support::golden_shape(false)), false,
                         {0.16877203, 0.65264692, 0.14983815, 0.73456814, 0.58098197, 0.35100851,
                          -0.03664070, 0.70416253});
}

TEST(Kde, IsTheRegressionOfItsDefinition) {
  const at::Tensor ones = torch::ones({B, H, N, N});
  for (const bool is_causal : {false, true}) {
    for (const bool padded : {false, true}) {
      Case c;
      c.pass.is_causal = is_causal;
      if (padded) c.pass.key_lengths = torch::tensor({N, N - 4});
      const KernelLoops loops{
          .kernel_scale = 0.8, .is_causal = is_causal, .key_lengths = c.pass.key_lengths};
      at::Tensor expected = support::regression_by_loops(loops.kernels(c.q, c.k), c.v, ones, ones);
      if (padded) expected[1].narrow(1, N - 4, 4).zero_();  // queries of padding
      KdeOptions options;
      options.kernel_scale = 0.8;
      const auto mixer = make_kde_mixer(options, kShape);
      for (const auto type : {torch::kDouble, torch::kFloat}) {
        EXPECT_LE(max_difference(mixer->mix(c.heads(type), c.pass, nullptr), expected),
                  tolerance(type));
      }
    }
  }
}

TEST(Kde, IsPlainAttentionOnNormalizedKeysAtHalfTheScale) {
  Case c;
  KdeOptions options;
  options.kernel_scale = 0.5 / std::sqrt(static_cast<double>(D));
  HeadMixer::Heads heads = c.heads(torch::kFloat);
  const at::Tensor out = make_kde_mixer(options, kShape)->mix(heads, c.pass, nullptr);
  heads.k = normalized_keys(heads.k);
  EXPECT_LE(max_difference(out, make_softmax_mixer({}, kShape)->mix(heads, c.pass, nullptr)), 1e-6);
}

TEST(KernelRegression, TakesAMetricAndWeightsOfKeys) {
  const at::Tensor metric = wave({B, H, N, D}, 0.17).abs() + 0.1;
  const KeyWeights weights{.log_marginal = wave({B, H, N}, 0.41).to(torch::kDouble),
                           .log_joint = wave({B, H, N}, 0.83).to(torch::kDouble),
                           .factor = wave({B, H, N}, 0.53).to(torch::kDouble) + 2.0};
  const auto rows = [](const at::Tensor& t) { return t.unsqueeze(-2).expand({B, H, N, N}); };
  const at::Tensor above = rows(weights.log_joint.exp()) * weights.factor.unsqueeze(-1);
  for (const bool one_row : {false, true}) {
    const at::Tensor m = one_row ? metric.narrow(2, 0, 1) : metric;
    Case c;
    const KernelLoops loops{.kernel_scale = 0.8, .metric = m.expand({B, H, N, D})};
    const at::Tensor expected = support::regression_by_loops(loops.kernels(c.q, c.k), c.v, above,
                                                             rows(weights.log_marginal.exp()));
    for (const auto type : {torch::kDouble, torch::kFloat}) {
      Trace trace;
      c.pass.trace = &trace;
      const at::Tensor out =
          kernel_regression(c.heads(type), m.to(type),
                            KeyWeights{weights.log_marginal.to(type), weights.log_joint.to(type),
                                       weights.factor.to(type)},
                            {.kernel_scale = 0.8}, c.pass);
      // Outputs are three times as large as those of plain attention, hence 3e-5 in float.
      EXPECT_LE(max_difference(out, expected), 3 * tolerance(type));
      const at::Tensor map = trace.tensors.at("layers.0.attention");
      EXPECT_LE(max_difference(map.matmul(c.v.to(type)), expected), 3 * tolerance(type));
      EXPECT_TRUE(at::equal(trace.tensors.at("layers.0.keys"), c.k.to(type)));
      EXPECT_TRUE(at::equal(trace.tensors.at("layers.0.metric"), m.to(type)));
    }
  }
}

TEST(KernelRegression, DifferentiatesEverything) {
  const auto small = [](at::IntArrayRef sizes, double frequency) {
    return wave(sizes, frequency).to(torch::kDouble);
  };
  EXPECT_TRUE(support::gradients_match(
      [](const std::vector<at::Tensor>& in) -> std::vector<at::Tensor> {
        Pass pass;
        pass.is_causal = true;
        return {kernel_regression({in[0], in[1], in[2], in[2]}, in[3],
                                  KeyWeights{in[4], in[5], in[6]}, {.kernel_scale = 0.7}, pass)};
      },
      {small({1, 2, 4, 3}, 0.7), small({1, 2, 4, 3}, 0.31), small({1, 2, 4, 3}, 1.3),
       small({1, 2, 1, 3}, 0.17).abs(), small({1, 2, 4}, 0.41), small({1, 2, 4}, 0.83),
       small({1, 2, 4}, 0.53)}));
}

TEST(Kde, AZeroKeyIsNeitherNanNorHasANanGradient) {
  Case c;
  c.k[0][0][3].zero_();
  const at::Tensor k = c.k.clone().requires_grad_();
  const at::Tensor out = make_kde_mixer({}, kShape)->mix({c.q, k, c.v, c.v}, c.pass, nullptr);
  out.square().sum().backward();
  EXPECT_TRUE(out.isfinite().all().item<bool>());
  EXPECT_TRUE(k.grad().isfinite().all().item<bool>());
}

TEST(Kde, ScaleHasAnEffectAndMustBePositive) {
  const support::AttentionVariant kde{.attention = "kde"};
  const auto output = [&](const std::vector<std::string>& assignments) {
    return support::AttentionStack(kde.options(assignments), kShape).forward(wave({B, N, H * D}));
  };
  EXPECT_FALSE(at::equal(output({}), output({"kernel_scale=0.4"})));
  EXPECT_TRUE(at::equal(output({}), output({"kernel_scale=0.5"})));  // 1 / sqrt(4)
  EXPECT_EQ(test::error_message<ConfigError>([&] { output({"kernel_scale=0"}); }),
            "--set kernel_scale=0: kernel_scale: must be a number > 0, got 0");
}

}  // namespace
}  // namespace elliptical::nn::kde_test
