// SPDX-License-Identifier: MIT
//
// Robust kernel density attention against loops over its definition, and what its weights owe.
#include "elliptical/nn/attention/rkde.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

#include "elliptical/base/errors.h"
#include "elliptical/nn/attention/kde.h"
#include "tests/support/attention_stack.h"
#include "tests/support/attention_variants.h"
#include "tests/support/error_message.h"
#include "tests/support/golden_heads.h"
#include "tests/support/kernel_regression_loops.h"
#include "tests/support/max_difference.h"

namespace elliptical::nn::rkde_test {
namespace {

using support::golden_heads;
using support::max_difference;
using support::wave;

constexpr int64_t B = 2, H = 3, N = 11, D = 4;
constexpr AttentionShape kTwoSided{.dim = H * D, .num_heads = H};
constexpr AttentionShape kCausal{.dim = H * D, .num_heads = H, .is_causal = true};
const double kGoldenScale = 1.0 / std::sqrt(2.0);

struct Weights {
  at::Tensor squared_distances, weights;  ///< (B, H, M); weights are psi, not normalized
};

/// The definition, by loops over a Gram matrix: point j is judged among the first `end(j)` points.
Weights weights_by_loops(const at::Tensor& x, const RobustWeightOptions& options) {
  const at::Tensor gram = support::gram_by_loops(x, options.kernel_scale);
  const auto g = gram.accessor<double, 4>();
  const int64_t M = x.size(2);
  at::Tensor w = torch::ones({x.size(0), x.size(1), M}, torch::kDouble), d2 = w.clone();
  for (int64_t iteration = 0; iteration < options.num_iterations; ++iteration) {
    const at::Tensor old = w.clone();
    const auto o = old.accessor<double, 3>();
    for (int64_t b = 0; b < x.size(0); ++b) {
      const int64_t length = options.lengths ? (*options.lengths)[b].item<int64_t>() : M;
      for (int64_t h = 0; h < x.size(1); ++h) {
        for (int64_t j = 0; j < length; ++j) {
          const int64_t end = options.prefix ? j + 1 : length;
          double sum = 0.0, row = 0.0, all = 0.0;
          for (int64_t l = 0; l < end; ++l) {
            sum += o[b][h][l];
            row += o[b][h][l] * g[b][h][j][l];
            for (int64_t i = 0; i < end; ++i) all += o[b][h][l] * o[b][h][i] * g[b][h][i][l];
          }
          const double a = options.threshold;
          const double squared = std::max(1.0 - 2.0 * row / sum + all / sum / sum, 1e-12);
          const double d = std::sqrt(squared);
          double psi = d <= a ? 1.0 : a / d;
          if (options.loss == RobustLoss::kHampel) {
            if (d >= 2 * a) psi = a * (3 * a - d) / (a * d);
            psi = std::max(psi, 0.01);
          }
          d2[b][h][j] = squared;
          w[b][h][j] = psi;
        }
      }
    }
  }
  return {d2, w};
}

at::Tensor joint_points(const at::Tensor& k, const at::Tensor& v) {
  return at::cat({normalized_keys(k), v}, -1);
}

at::Tensor omega(const at::Tensor& x, const RobustWeightOptions& options) {
  return robust_log_weights(x, options).softmax(-1);
}

void expect_numbers(const at::Tensor& given, std::vector<double> expected, double tolerance) {
  EXPECT_LE(max_difference(given.flatten(), torch::tensor(expected, torch::kDouble)), tolerance)
      << given;
}

TEST(Rkde, GoldenHuber) {
  support::expect_golden(*make_rkde_mixer({}, support::golden_shape(false)), false,
                         {0.14937545, 0.65516091, 0.12847759, 0.71280873, 0.60715870, 0.40203310,
                          -0.04482628, 0.69628395});
}

TEST(Rkde, GoldenHampel) {
  RkdeOptions options;
  options.loss = RobustLoss::kHampel;
  support::expect_golden(*make_rkde_mixer(options, support::golden_shape(false)), false,
                         {0.15823308, 0.61189243, 0.12492676, 0.61244229, 0.94391038, 0.57027686,
                          -0.03230742, 0.62088550});
}

TEST(Rkde, GoldenIntermediates) {
  const auto heads = golden_heads();
  const at::Tensor marginal = normalized_keys(heads.k), joint = joint_points(heads.k, heads.v);
  RobustWeightOptions options{.kernel_scale = kGoldenScale};
  const at::Tensor start = torch::zeros({1, 1, 4}, torch::kDouble);
  // Given to 6 decimals.
  expect_numbers(density_distances(marginal, start, options).sqrt(),
                 {0.833268, 0.628602, 0.717212, 0.558717}, 1e-6);
  expect_numbers(density_distances(joint, start, options).sqrt(),
                 {0.860993, 0.766700, 0.852374, 0.823506}, 1e-6);
  expect_numbers(omega(marginal, options), {0.20085163, 0.26624681, 0.23335237, 0.29954919}, 1e-8);
  expect_numbers(omega(joint, options), {0.23931349, 0.26874555, 0.24173349, 0.25020748}, 1e-8);

  Trace trace;
  Pass pass;
  pass.trace = &trace;
  make_rkde_mixer({}, support::golden_shape(false))->mix(heads, pass, nullptr);
  expect_numbers(trace.tensors.at("layers.0.attention").sum(-1),
                 {0.988343, 0.965803, 1.086656, 0.971879}, 1e-6);

  options.loss = RobustLoss::kHampel;
  expect_numbers(omega(marginal, options), {0.09625674, 0.09625674, 0.09625674, 0.71122978}, 1e-8);
  expect_numbers(omega(joint, options), {0.25, 0.25, 0.25, 0.25}, 1e-12);
}

// What the public code for pictures gives on the same numbers, in double.
TEST(Rkde, GoldenReleased) {
  RkdeOptions options;
  options.form = RobustForm::kReleased;
  const auto mixer = [&] { return make_rkde_mixer(options, support::golden_shape(false)); };
  support::expect_golden(*mixer(), false,
                         {0.17277297, 0.65136353, 0.15421987, 0.73752546, 0.57981462, 0.34390593,
                          -0.03449185, 0.70311440});
  options.num_iterations = 3;
  support::expect_golden(*mixer(), false,
                         {0.17247006, 0.65146380, 0.15387260, 0.73731310, 0.57981450, 0.34431606,
                          -0.03469160, 0.70330883});
  // Beyond a threshold of 1 / 3 Hampel's function has weights to tell apart.
  options.num_iterations = 1;
  options.loss = RobustLoss::kHampel;
  options.threshold = 0.55;
  support::expect_golden(*mixer(), false,
                         {0.18776796, 0.65086573, 0.17196024, 0.75843265, 0.55666125, 0.30999697,
                          -0.02744141, 0.71342931});
}

// The released code averages weights over the batch between iterations: with the same tokens in
// reverse as a second sequence the first one changes.
TEST(Rkde, ReleasedIterationsShareWeightsInABatch) {
  const auto one = golden_heads();
  const auto both = [](const at::Tensor& t) { return at::cat({t, t.flip(2)}); };
  RkdeOptions options;
  options.form = RobustForm::kReleased;
  options.num_iterations = 3;
  const at::Tensor v = both(one.v);
  const at::Tensor out = make_rkde_mixer(options, support::golden_shape(false))
                             ->mix({both(one.q), both(one.k), v, v}, {}, nullptr);
  expect_numbers(out[0],
                 {0.17284675, 0.65145154, 0.15437254, 0.73761285, 0.57973794, 0.34398380,
                  -0.03442573, 0.70319248},
                 1e-7);
}

TEST(Rkde, ReleasedHampelIsKde) {
  RkdeOptions options;
  options.form = RobustForm::kReleased;
  options.loss = RobustLoss::kHampel;
  const auto heads = golden_heads();
  EXPECT_LE(max_difference(
                make_rkde_mixer(options, support::golden_shape(false))->mix(heads, {}, nullptr),
                make_kde_mixer({}, support::golden_shape(false))->mix(heads, {}, nullptr)),
            1e-14);
}

TEST(Rkde, TheReleasedFormPrefersOutliers) {
  at::Tensor x = 0.1 * wave({1, 1, 20, 3}).to(torch::kDouble);
  x[0][0][7].fill_(2.0);
  const at::Tensor w =
      omega(x, {.kernel_scale = 1.0, .form = RobustForm::kReleased, .threshold = 0.05}).flatten();
  EXPECT_EQ(w.argmax().item<int64_t>(), 7);
}

TEST(Rkde, ACausalModelHasNoReleasedForm) {
  RkdeOptions options;
  options.form = RobustForm::kReleased;
  EXPECT_EQ(test::error_message<ConfigError>([&] { make_rkde_mixer(options, kCausal); }),
            "rkde attention: form must be \"literature\" in a causal model, got \"released\" (the "
            "released language model gives all keys the same weight: that is name = \"kde\")");
}

TEST(Rkde, IsTheRegressionOfItsDefinition) {
  const at::Tensor q = wave({B, H, N, D}), k = wave({B, H, N, D}, 0.31),
                   v = 0.4 * wave({B, H, N, D}, 1.3);
  for (const bool is_causal : {false, true}) {
    for (const bool padded : {false, true}) {
      for (const bool hampel : {false, true}) {
        Pass pass;
        pass.is_causal = is_causal;
        if (padded) pass.key_lengths = torch::tensor({N, N - 4});
        RkdeOptions options;
        options.kernel_scale = 0.8;
        options.threshold = 0.3;
        options.num_iterations = hampel ? 3 : 1;
        options.loss = hampel ? RobustLoss::kHampel : RobustLoss::kHuber;
        const RobustWeightOptions call{.kernel_scale = 0.8,
                                       .loss = options.loss,
                                       .threshold = 0.3,
                                       .num_iterations = options.num_iterations,
                                       .prefix = is_causal,
                                       .lengths = pass.key_lengths};
        const support::KernelLoops loops{
            .kernel_scale = 0.8, .is_causal = is_causal, .key_lengths = pass.key_lengths};
        const at::Tensor kernels = loops.kernels(q, k);
        // Each query normalizes the weights of the keys that it sees.
        const auto normalized = [&](const at::Tensor& x) {
          const at::Tensor w = weights_by_loops(x, call).weights.unsqueeze(-2) * kernels.ne(0);
          return w / w.sum(-1, true).clamp_min(1e-30);
        };
        const at::Tensor k_double = normalized_keys(k.to(torch::kDouble));
        at::Tensor expected = support::regression_by_loops(
            kernels, v, normalized(at::cat({k_double, v.to(torch::kDouble)}, -1)),
            normalized(k_double));
        if (padded) expected[1].narrow(1, N - 4, 4).zero_();  // queries of padding
        const auto mixer = make_rkde_mixer(options, is_causal ? kCausal : kTwoSided);
        for (const auto type : {torch::kDouble, torch::kFloat}) {
          const at::Tensor out =
              mixer->mix({q.to(type), k.to(type), v.to(type), v.to(type)}, pass, nullptr);
          EXPECT_LE(max_difference(out, expected), type == torch::kDouble ? 1e-10 : 1e-5)
              << is_causal << padded << hampel;
        }
      }
    }
  }
}

TEST(Rkde, AWideThresholdIsKde) {
  RkdeOptions options;
  options.threshold = 10.0;
  const auto heads = golden_heads();
  EXPECT_LE(max_difference(
                make_rkde_mixer(options, support::golden_shape(false))->mix(heads, {}, nullptr),
                make_kde_mixer({}, support::golden_shape(false))->mix(heads, {}, nullptr)),
            1e-14);
}

TEST(Rkde, TheThresholdCancelsWhenAllPointsAreBeyondIt) {
  const at::Tensor x = normalized_keys(golden_heads().k);
  EXPECT_LE(max_difference(omega(x, {.kernel_scale = kGoldenScale, .threshold = 0.1}),
                           omega(x, {.kernel_scale = kGoldenScale, .threshold = 0.5})),
            1e-14);
}

TEST(Rkde, AnIsolatedPointHasTheSmallestWeightAndEqualPointsEqualOnes) {
  at::Tensor x = 0.1 * wave({1, 1, 20, 3}).to(torch::kDouble);
  x[0][0][7].fill_(2.0);
  x[0][0][12].copy_(x[0][0][3]);
  const at::Tensor w = omega(x, {.kernel_scale = 1.0, .threshold = 0.05}).flatten();
  EXPECT_EQ(w.argmin().item<int64_t>(), 7);
  EXPECT_NEAR(w[12].item<double>(), w[3].item<double>(), 1e-14);
}

TEST(Rkde, TheHuberObjectiveNeverRises) {
  const double a = 0.4;
  at::Tensor x = 0.7 * wave({1, 1, 15, 3}).to(torch::kDouble);
  x[0][0][4].fill_(2.0);
  double before = 1e9;
  for (int64_t t = 0; t < 12; ++t) {
    RobustWeightOptions options{.kernel_scale = 1.0, .threshold = a, .num_iterations = t};
    const at::Tensor d =
        density_distances(x, robust_log_weights(x, options), options).sqrt().flatten();
    const double objective =
        at::where(d <= a, d.square() / 2, a * d - a * a / 2).sum().item<double>();
    EXPECT_LE(objective, before + 1e-12) << t;
    before = objective;
  }
}

TEST(Rkde, EachOptionHasAnEffect) {
  const auto output = [](std::vector<std::string> assignments) {
    const support::AttentionVariant rkde{.attention = "rkde", .assignments = assignments};
    return support::AttentionStack(rkde.options(), kTwoSided).forward(wave({B, N, H * D}));
  };
  const at::Tensor plain = output({});
  for (const char* change : {"form=released", "kernel_scale=0.4", "loss=hampel", "threshold=0.5",
                             "scope=prefix", "num_iterations=3", "distance=elliptical"}) {
    EXPECT_FALSE(at::equal(output({change}), plain)) << change;
  }
  EXPECT_TRUE(at::equal(output({"scope=sequence"}), plain));
}

TEST(Rkde, ACausalModelMustAskForTheFuture) {
  RkdeOptions options;
  options.scope = ops::MetricScope::kSequence;
  EXPECT_EQ(test::error_message<ConfigError>([&] { make_rkde_mixer(options, kCausal); }),
            "rkde attention: scope must be \"prefix\" in a causal model, got \"sequence\": every "
            "token would see the ones after it through the weights of keys (say lookahead = true "
            "to have it so)");
  const auto leaks = [&](const AttentionShape& shape) {
    return std::get<bool>(make_rkde_mixer(options, shape)->labels().at("leaks_future"));
  };
  EXPECT_FALSE(leaks(kTwoSided));
  options.lookahead = true;
  EXPECT_TRUE(leaks(kCausal));
  EXPECT_FALSE(std::get<bool>(make_rkde_mixer({}, kCausal)->labels().at("leaks_future")));
}

}  // namespace
}  // namespace elliptical::nn::rkde_test
