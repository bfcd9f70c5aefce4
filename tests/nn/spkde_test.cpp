// SPDX-License-Identifier: MIT
//
// Scaled and projected kernel density attention against loops over its definition, and what its
// weights owe.
#include "elliptical/nn/attention/spkde.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

#include "elliptical/base/errors.h"
#include "elliptical/nn/attention/kde.h"
#include "elliptical/nn/attention/simplex_qp.h"
#include "tests/support/attention_stack.h"
#include "tests/support/attention_variants.h"
#include "tests/support/error_message.h"
#include "tests/support/golden_heads.h"
#include "tests/support/kernel_regression_loops.h"
#include "tests/support/max_difference.h"

namespace elliptical::nn::spkde_test {
namespace {

using support::max_difference;
using support::wave;

constexpr int64_t B = 2, H = 3, N = 11, D = 4;
constexpr AttentionShape kTwoSided{.dim = H * D, .num_heads = H};
constexpr AttentionShape kCausal{.dim = H * D, .num_heads = H, .is_causal = true};
const double kGoldenScale = 1.0 / std::sqrt(2.0);

at::Tensor joint_points(const at::Tensor& k, const at::Tensor& v) {
  return at::cat({normalized_keys(k), v}, -1).to(torch::kDouble);
}

/// The definition: one Gram matrix, the mean over sequences and heads; each sequence has its own
/// density to come near to.
at::Tensor weights_by_loops(const at::Tensor& x,
                            double kernel_scale,
                            double outliers,
                            const std::vector<int64_t>& lengths) {
  const at::Tensor grams = support::gram_by_loops(x, kernel_scale);
  const auto g = grams.accessor<double, 4>();
  const auto M = static_cast<size_t>(x.size(2));
  std::vector<double> G(M * M, 0.0), q(M, 0.0);
  for (int64_t b = 0; b < x.size(0); ++b) {
    const int64_t length = lengths[static_cast<size_t>(b)];
    for (int64_t h = 0; h < x.size(1); ++h) {
      for (int64_t j = 0; j < length; ++j) {
        for (int64_t l = 0; l < length; ++l) {
          const double share = g[b][h][j][l] / static_cast<double>(x.size(0) * x.size(1));
          G[static_cast<size_t>(j) * M + static_cast<size_t>(l)] += share;
          q[static_cast<size_t>(j)] += share / (1.0 - outliers) / static_cast<double>(length);
        }
      }
    }
  }
  return torch::tensor(solve_simplex_qp(G, q).weights, torch::kDouble);
}

TEST(Spkde, Golden) {
  support::expect_golden(*make_spkde_mixer({}, support::golden_shape(false)), false,
                         {0.16335445, 0.65344710, 0.14467771, 0.73095039, 0.58474857, 0.36399333,
                          -0.03823036, 0.69926721});
}

TEST(Spkde, GoldenWeights) {
  const auto heads = support::golden_heads();
  const auto expect = [](const at::Tensor& x, std::vector<double> expected) {
    const at::Tensor w = projected_weights(x, {.kernel_scale = kGoldenScale});
    // The golden weights have 8 decimals, the conditions hold to 1e-8.
    EXPECT_LE(max_difference(w, torch::tensor(expected, torch::kDouble).view_as(w)), 5e-8) << w;
  };
  expect(normalized_keys(heads.k), {0.23774986, 0.25437411, 0.23514112, 0.27273491});
  expect(joint_points(heads.k, heads.v), {0.24660575, 0.25659703, 0.24747282, 0.24932440});
}

TEST(Spkde, IsTheRegressionOfItsDefinition) {
  const at::Tensor q = wave({B, H, N, D}), k = wave({B, H, N, D}, 0.31),
                   v = wave({B, H, N, D}, 1.3);
  for (const bool is_causal : {false, true}) {
    for (const bool padded : {false, true}) {
      SpkdeOptions options;
      options.kernel_scale = 0.8;
      options.outliers = 0.3;
      options.lookahead = true;
      Pass pass;
      pass.is_causal = is_causal;
      if (padded) pass.key_lengths = torch::tensor({N, N - 4});
      const std::vector<int64_t> lengths{N, padded ? N - 4 : N};
      const support::KernelLoops loops{
          .kernel_scale = 0.8, .is_causal = is_causal, .key_lengths = pass.key_lengths};
      const at::Tensor kernels = loops.kernels(q, k);
      // Weights add up to 1 over the keys that a query sees.
      const auto rows = [&](const at::Tensor& x) {
        const at::Tensor w =
            weights_by_loops(x, 0.8, 0.3, lengths).clamp_min(1e-12) * kernels.ne(0);
        return w / w.sum(-1, true).clamp_min(1e-30);
      };
      const at::Tensor keys = normalized_keys(k.to(torch::kDouble));
      at::Tensor expected = support::regression_by_loops(
          kernels, v, rows(at::cat({keys, v.to(torch::kDouble)}, -1)), rows(keys));
      if (padded) expected[1].narrow(1, N - 4, 4).zero_();  // queries of padding
      const auto mixer = make_spkde_mixer(options, is_causal ? kCausal : kTwoSided);
      for (const auto type : {torch::kDouble, torch::kFloat}) {
        const at::Tensor out =
            mixer->mix({q.to(type), k.to(type), v.to(type), v.to(type)}, pass, nullptr);
        EXPECT_LE(max_difference(out, expected), type == torch::kDouble ? 1e-10 : 1e-5)
            << is_causal << padded;
      }
    }
  }
}

TEST(Spkde, WithoutOutliersItIsKde) {
  SpkdeOptions options;
  options.outliers = 0.0;
  const auto heads = support::golden_heads();
  EXPECT_LE(max_difference(
                make_spkde_mixer(options, support::golden_shape(false))->mix(heads, {}, nullptr),
                make_kde_mixer({}, support::golden_shape(false))->mix(heads, {}, nullptr)),
            1e-14);
}

TEST(Spkde, MoreOutliersMoveWeightToWhereTheDataAreDense) {
  const at::Tensor x = 0.7 * wave({1, 1, 20, 3}).to(torch::kDouble);
  const at::Tensor density = support::gram_by_loops(x, 1.0)[0][0].sum(-1);
  double before = density.mean().item<double>();
  for (const double outliers : {0.05, 0.1, 0.3, 0.6}) {
    const at::Tensor w = projected_weights(x, {.kernel_scale = 1.0, .outliers = outliers});
    EXPECT_NEAR(w.sum().item<double>(), 1.0, 1e-12);
    EXPECT_GE(w.min().item<double>(), 0.0);
    const double mean = (w * density).sum().item<double>();
    EXPECT_GT(mean, before) << outliers;
    before = mean;
  }
}

TEST(Spkde, PaddingHasNoWeight) {
  const at::Tensor x = wave({1, 2, 9, 3}).to(torch::kDouble);
  const at::Tensor alone = projected_weights(x.narrow(2, 0, 5), {});
  const at::Tensor padded = projected_weights(x, {.lengths = torch::tensor({5})});
  EXPECT_LE(max_difference(padded.narrow(2, 0, 5), alone), 1e-6);
  EXPECT_EQ(padded.narrow(2, 5, 4).max().item<double>(), 0.0);
}

TEST(Spkde, HeadsMayHaveWeightsOfTheirOwn) {
  const at::Tensor x = wave({2, 3, 9, 4}).to(torch::kDouble);
  const at::Tensor lengths = torch::tensor({9, 6});
  const at::Tensor w = projected_weights(x, {.per_head = true, .lengths = lengths});
  ASSERT_EQ(w.sizes(), (std::vector<int64_t>{2, 3, 9}));
  for (int64_t b = 0; b < 2; ++b) {
    const auto length = lengths[b].item<int64_t>();
    for (int64_t h = 0; h < 3; ++h) {
      const at::Tensor points = x.narrow(0, b, 1).narrow(1, h, 1).narrow(2, 0, length);
      EXPECT_TRUE(at::equal(w[b][h].narrow(0, 0, length), projected_weights(points, {})[0][0]));
    }
  }
  EXPECT_EQ(w[1].narrow(1, 6, 3).abs().max().item<double>(), 0.0);
}

TEST(Spkde, EachOptionHasAnEffect) {
  const auto output = [](std::vector<std::string> assignments) {
    const support::AttentionVariant spkde{
        .name = "spkde", .attention = "spkde", .assignments = assignments};
    return support::AttentionStack(spkde.options(), kTwoSided).forward(wave({B, N, H * D}));
  };
  const at::Tensor plain = output({});
  for (const char* change :
       {"kernel_scale=0.1", "outliers=0.2", "weights=per-head", "distance=elliptical"}) {
    EXPECT_FALSE(at::equal(output({change}), plain)) << change;
  }
  EXPECT_EQ(test::error_message<ConfigError>([&] { output({"outliers=1"}); }),
            "--set outliers=1: outliers: must be a number in [0, 1), got 1");
}

TEST(Spkde, ACausalModelMustAskForTheFuture) {
  SpkdeOptions options;
  EXPECT_EQ(test::error_message<ConfigError>([&] { make_spkde_mixer(options, kCausal); }),
            "spkde attention: lookahead must be true in a causal model, got false: every token "
            "sees the ones after it through the weights of keys (rkde judges keys by the past "
            "alone)");
  const auto leaks = [&](const AttentionShape& shape) {
    return std::get<bool>(make_spkde_mixer(options, shape)->labels().at("leaks_future"));
  };
  EXPECT_FALSE(leaks(kTwoSided));
  options.lookahead = true;
  EXPECT_TRUE(leaks(kCausal));
}

}  // namespace
}  // namespace elliptical::nn::spkde_test
