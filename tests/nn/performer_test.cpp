// SPDX-License-Identifier: MIT
//
// Performer: what the random features estimate and how well, attention through them against plain
// loops, and what is refused.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

#include "elliptical/base/errors.h"
#include "elliptical/nn/attention/performer.h"
#include "elliptical/nn/attention/softmax.h"
#include "tests/support/attention_stack.h"
#include "tests/support/attention_variants.h"
#include "tests/support/error_message.h"
#include "tests/support/forward_mode.h"
#include "tests/support/gradcheck.h"

namespace elliptical::nn::performer_test {
namespace {

using support::AttentionStack;
using support::AttentionVariant;
using support::wave;

double number(const at::Tensor& t) { return t.item<double>(); }

/// Row i of attention by the definition, two loops, everything in double; query i sees `end(i)`
/// keys.
template <class End>
at::Tensor loops(const at::Tensor& q,
                 const at::Tensor& k,
                 const at::Tensor& v,
                 const at::Tensor& W,
                 const FavorOptions& options,
                 End end) {
  const int64_t N = q.size(2), m = W.size(0), F = options.hyperbolic ? 2 * m : m;
  const auto w = W.accessor<double, 2>();
  const auto qs = q.accessor<double, 4>()[0][0], ks = k.accessor<double, 4>()[0][0];
  const auto log_feature = [&](const auto& x, int64_t r) {
    double sum = 0;
    for (int64_t d = 0; d < W.size(1); ++d) {
      sum += (r < m ? 1.0 : -1.0) * w[r % m][d] * x[d] - x[d] * x[d] / 2;
    }
    return sum;
  };
  at::Tensor out = torch::zeros_like(v);
  for (int64_t i = 0; i < N; ++i) {
    double q_shift = 0, k_shift = 0;
    if (options.stabilised) {
      q_shift = k_shift = -INFINITY;
      for (int64_t r = 0; r < F; ++r) {
        q_shift = std::max(q_shift, log_feature(qs[i], r));
        for (int64_t j = 0; j < end(i); ++j) {
          k_shift = std::max(k_shift, log_feature(ks[j], r));
        }
      }
    }
    double denominator = 0;
    for (int64_t j = 0; j < end(i); ++j) {
      double weight = 0;
      for (int64_t r = 0; r < F; ++r) {
        weight += (std::exp(log_feature(qs[i], r) - q_shift) + options.epsilon) *
                  (std::exp(log_feature(ks[j], r) - k_shift) + options.epsilon);
      }
      denominator += weight;
      out[0][0][i] += weight * v[0][0][j];
    }
    out[0][0][i] /= denominator + static_cast<double>(F) * options.denominator_epsilon;
  }
  return out;
}

struct Problem {
  at::Tensor q = wave({1, 1, 150, 4}).to(torch::kDouble);
  at::Tensor k = wave({1, 1, 150, 4}, 0.3).to(torch::kDouble);
  at::Tensor v = wave({1, 1, 150, 3}, 0.9).to(torch::kDouble);
  at::Tensor W = draw_favor_projection(FavorProjection::kOrthogonal, 6, 4, RandomKey(1)).to(q);
};

const std::vector<FavorOptions> kForms{
    {},
    {.hyperbolic = false},
    {.epsilon = 0.0},
    {.stabilised = false},
    {.stabilised = false, .denominator_epsilon = 0.3},
};

TEST(Favor, CausalAgreesWithLoops) {  // 150 tokens: full chunks and a part
  const Problem p;
  for (const FavorOptions& form : kForms) {
    const at::Tensor expected = loops(p.q, p.k, p.v, p.W, form, [](int64_t i) { return i + 1; });
    for (const auto type : {torch::kDouble, torch::kFloat}) {
      const auto features = [&](const at::Tensor& x) {
        return favor_features(x.to(type), p.W.to(type), form);
      };
      const at::Tensor out = favor_causal(features(p.q), features(p.k), p.v.to(type), form);
      EXPECT_LE(number((out - expected).abs().max()), type == torch::kDouble ? 1e-10 : 1e-5);
    }
  }
}

TEST(Favor, TwoSidedAgreesWithLoops) {
  const Problem p;
  for (const FavorOptions& form : kForms) {
    const auto features = [&](const at::Tensor& x) { return favor_features(x, p.W, form); };
    const at::Tensor expected =
        loops(p.q, p.k, p.v, p.W, form, [](int64_t) { return int64_t{150}; });
    const at::Tensor out = favor_two_sided(features(p.q), features(p.k), p.v, {}, form);
    EXPECT_LE(number((out - expected).abs().max()), 1e-10);
    // Padding: the first 100 keys alone.
    const at::Tensor real = (torch::arange(150) < 100).view({1, 1, 150, 1});
    const at::Tensor part = loops(p.q, p.k, p.v, p.W, form, [](int64_t) { return int64_t{100}; });
    const at::Tensor padded = favor_two_sided(features(p.q), features(p.k), p.v, real, form);
    EXPECT_LE(number((padded - part).abs().max()), 1e-10);
  }
}

TEST(Favor, ChunksAreTheMaskedProduct) {
  const Problem p;
  for (const FavorOptions& form : kForms) {
    const FavorFeatures q = favor_features(p.q, p.W, form), k = favor_features(p.k, p.W, form);
    const at::Tensor quadratic = favor_map(q, k, {}, true, form).matmul(p.v);
    EXPECT_LE(number((favor_causal(q, k, p.v, form) - quadratic).abs().max()), 1e-12);
  }
}

TEST(Favor, LargeInputsStayFinite) {
  const Problem p;
  for (const double size : {30.0, 300.0}) {
    const auto features = [&](const at::Tensor& x) {
      return favor_features((x * size).to(torch::kFloat), p.W.to(torch::kFloat), {});
    };
    const at::Tensor v = p.v.to(torch::kFloat);
    EXPECT_TRUE(favor_causal(features(p.q), features(p.k), v, {}).isfinite().all().item<bool>());
    EXPECT_TRUE(
        favor_two_sided(features(p.q), features(p.k), v, {}, {}).isfinite().all().item<bool>());
  }
}

TEST(Favor, GradientsMatchDifferences) {
  const at::Tensor W =
      draw_favor_projection(FavorProjection::kGaussian, 3, 2, RandomKey(1)).to(torch::kDouble);
  for (const bool stabilised : {true, false}) {
    const FavorOptions form{.stabilised = stabilised, .epsilon = stabilised ? 0.0 : 0.1};
    // 66 tokens reach over a chunk.
    const std::vector<at::Tensor> inputs{wave({1, 1, 66, 2}).to(torch::kDouble),
                                         wave({1, 1, 66, 2}, 0.3).to(torch::kDouble),
                                         wave({1, 1, 66, 1}, 0.9).to(torch::kDouble)};
    EXPECT_TRUE(support::gradients_match(
        [&](const std::vector<at::Tensor>& in) -> std::vector<at::Tensor> {
          const FavorFeatures q = favor_features(in[0], W, form),
                              k = favor_features(in[1], W, form);
          return {favor_causal(q, k, in[2], form), favor_two_sided(q, k, in[2], {}, form)};
        },
        inputs));
  }
}

/// The fused exponential has no forward rule; in float and double, and not by a derivative of 0.
TEST(Favor, ForwardModeIsReverseMode) {
  for (const auto type : {torch::kFloat, torch::kDouble}) {
    const at::Tensor W =
        draw_favor_projection(FavorProjection::kGaussian, 3, 2, RandomKey(1)).to(type);
    const at::Tensor x = wave({1, 1, 66, 2}).to(type), tangent = wave({1, 1, 66, 2}, 0.4).to(type);
    const auto values = [&](const std::vector<at::Tensor>& in) {
      const FavorFeatures features = favor_features(in[0], W, {});
      return features.values * features.log_scale.exp();
    };
    const at::Tensor own = x.clone().requires_grad_(), out = values({own});
    const at::Tensor gradient = torch::autograd::grad({out.cos().sum()}, {own})[0];
    const support::DualValue dual = support::forward_derivative(values, {x}, {tangent});
    ASSERT_TRUE(dual.tangent.defined());
    const double forward = number(-(out.sin() * dual.tangent).sum().to(torch::kDouble));
    const double size = number((gradient * tangent).abs().sum().to(torch::kDouble));
    EXPECT_NEAR(forward, number((gradient * tangent).sum().to(torch::kDouble)),
                (type == torch::kFloat ? 1e-5 : 1e-12) * size);
  }
}

/// Mean and variance over draws of W of the estimate of exp(q . k).
struct Estimate {
  double mean, variance;
};

Estimate estimate(FavorProjection kind, bool hyperbolic, int64_t m, int64_t draws) {
  const at::Tensor q = torch::tensor({0.5, -0.3, 0.2, 0.4}, torch::kDouble);
  const at::Tensor k = torch::tensor({0.1, 0.4, 0.3, -0.2}, torch::kDouble);
  // Blocks of four rows are independent: one large W holds all draws.
  const at::Tensor W = draw_favor_projection(kind, m * draws, 4, RandomKey(7)).to(q);
  const FavorOptions form{.hyperbolic = hyperbolic, .epsilon = 0.0};
  const auto phi = [&](const at::Tensor& x) {
    const FavorFeatures features = favor_features(x.view({1, 1, 1, 4}), W, form);
    return (features.values * features.log_scale.exp()).view({-1, draws, m});
  };
  const at::Tensor all = (phi(q) * phi(k)).mean(at::IntArrayRef{0, 2});  // (draws)
  return {number(all.mean()), number(all.var())};
}

TEST(Favor, EstimatesTheSoftmaxKernel) {
  constexpr int64_t kDraws = 20000, m = 4;
  const double product = 0.05 - 0.12 + 0.06 - 0.08, z2 = 0.36 + 0.01 + 0.25 + 0.04;
  const double mean = std::exp(product);
  const double variance = std::exp(2 * product) * (std::exp(z2) - 1) / m;
  for (const bool hyperbolic : {false, true}) {
    const double expected = hyperbolic ? variance * (1 - std::exp(-z2)) / 2 : variance;
    const Estimate gaussian = estimate(FavorProjection::kGaussian, hyperbolic, m, kDraws);
    // 5 standard errors of the mean; the variance of 20000 draws is good to about 3 %.
    EXPECT_NEAR(gaussian.mean, mean, 5 * std::sqrt(expected / kDraws));
    EXPECT_NEAR(gaussian.variance / expected, 1.0, 0.1);
    const Estimate orthogonal = estimate(FavorProjection::kOrthogonal, hyperbolic, m, kDraws);
    EXPECT_NEAR(orthogonal.mean, mean, 5 * std::sqrt(expected / kDraws));
    EXPECT_LE(orthogonal.variance, expected);
  }
}

TEST(Favor, DirectionsAreOrthogonalInBlocks) {
  const at::Tensor W = draw_favor_projection(FavorProjection::kOrthogonal, 10, 4, RandomKey(3));
  ASSERT_EQ(W.sizes(), (at::IntArrayRef{10, 4}));
  for (const int64_t begin : {0, 4, 8}) {
    const at::Tensor block = W.narrow(0, begin, std::min<int64_t>(4, 10 - begin));
    const at::Tensor products = block.matmul(block.t());
    EXPECT_LE(number((products - products.diagonal().diag()).abs().max()), 1e-5);
  }
  EXPECT_GT(number(W[0].dot(W[4]).abs()), 1e-3) << "blocks are independent";
  const at::Tensor other =
      draw_favor_projection(FavorProjection::kOrthogonalColumns, 10, 4, RandomKey(3));
  ASSERT_EQ(other.sizes(), (at::IntArrayRef{10, 4}));
  const at::Tensor products = other.t().matmul(other);
  EXPECT_LE(number((products - products.diagonal().diag()).abs().max()), 1e-5);
}

TEST(Performer, ErrorShrinksWithTheRootOfTheFeatures) {
  const at::Tensor q = wave({2, 3, 40, 8}) * 0.3, k = wave({2, 3, 40, 8}, 0.3) * 0.3,
                   v = wave({2, 3, 40, 8}, 0.9);
  const AttentionShape shape{.dim = 24, .num_heads = 3};
  const Pass pass;
  const at::Tensor exact = make_softmax_mixer({}, shape)->mix({q, k, v, v}, pass, nullptr);
  const auto error = [&](int64_t m) {
    double sum = 0;
    for (int64_t seed = 0; seed < 32; ++seed) {
      PerformerOptions options;
      options.num_features = m;
      options.seed = seed;
      options.favor.epsilon = 0;
      options.projection = FavorProjection::kGaussian;
      const at::Tensor out = make_performer_mixer(options, shape)->mix({q, k, v, v}, pass, nullptr);
      sum += number((out - exact).square().mean());
    }
    return std::sqrt(sum / 32);
  };
  const double coarse = error(64), fine = error(4096);
  EXPECT_LT(coarse, 0.05);
  EXPECT_NEAR(coarse / fine, 8.0, 2.0);  // sqrt(4096 / 64); 32 draws
}

TEST(Performer, RedrawsInTrainingOnly) {
  const AttentionVariant variant{.attention = "performer", .assignments = {"redraw=true"}};
  const AttentionStack stack(variant.options(), {.dim = 12, .num_heads = 3, .is_causal = true});
  const auto run = [&](bool training, uint64_t seed) {
    Pass pass;
    pass.training = training;
    pass.random = RandomKey(seed);
    return stack.forward(wave({2, 9, 12}), pass);
  };
  EXPECT_FALSE(at::equal(run(true, 1), run(true, 2)));
  EXPECT_TRUE(at::equal(run(true, 1), run(true, 1)));
  EXPECT_TRUE(at::equal(run(false, 1), run(false, 2)));
}

TEST(Performer, EachOptionHasAnEffect) {
  const auto output = [](const std::vector<std::string>& assignments) {
    const AttentionVariant variant{.attention = "performer", .assignments = assignments};
    Pass pass;
    pass.key_lengths = torch::tensor({20, 11});
    return AttentionStack(variant.options(), {.dim = 12, .num_heads = 3})
        .forward(wave({2, 20, 12}), pass);
  };
  const at::Tensor reference = output({});
  for (const char* assignment :
       {"preset=released-lm", "preset=released-lra", "num_features=32", "projection=gaussian",
        "projection=orthogonal-columns", "hyperbolic=false", "logit_scale=none", "logit_scale=dim",
        "stabilised=false", "epsilon=0.01", "denominator_epsilon=0.1", "count_padding=true",
        "seed=2", "distance=elliptical"}) {
    EXPECT_FALSE(at::equal(output({assignment}), reference)) << assignment;
  }
}

TEST(Performer, PaddingAsReleasedCountsZeroKeys) {
  // Zero keys have features 1 in all directions and a value of 0: they only add to the denominator.
  const at::Tensor q = wave({1, 1, 6, 4}), k = wave({1, 1, 6, 4}, 0.3),
                   v = torch::ones({1, 1, 6, 4});
  Pass pass;
  pass.key_lengths = torch::tensor({4});
  PerformerOptions options;
  options.count_padding = true;
  const AttentionShape shape{.dim = 4, .num_heads = 1};
  const at::Tensor out = make_performer_mixer(options, shape)->mix({q, k, v, v}, pass, nullptr);
  EXPECT_LT(number(out[0][0][0].max()), 0.99);
  options.count_padding = false;
  const at::Tensor ours = make_performer_mixer(options, shape)->mix({q, k, v, v}, pass, nullptr);
  EXPECT_NEAR(number(ours[0][0][0].max()), 1.0, 1e-5);
}

TEST(Performer, RefusesWhatItCanNotDo) {
  const auto refusal = [](const std::vector<std::string>& assignments, double dropout) {
    const AttentionVariant variant{.attention = "performer", .assignments = assignments};
    return test::error_message<ConfigError>([&] {
      AttentionStack(variant.options(),
                     {.dim = 12, .num_heads = 3, .is_causal = true, .dropout = dropout});
    });
  };
  EXPECT_EQ(refusal({}, 0.25),
            "performer attention: attention_dropout must be 0, got 0.250000 (linear attention has "
            "no probabilities to drop)");
  EXPECT_EQ(refusal({"distance=elliptical"}, 0.0),
            "performer attention: the metric must be one row for a whole sequence, got "
            "metric.scope = \"prefix\" (keys are stretched by it before queries see them: use an "
            "estimator that reads no tokens, a model that is not causal, or elliptical attention)");
  EXPECT_EQ(refusal({"distance=elliptical", "metric.estimator=random_fixed"}, 0.0), "no error");
}

TEST(Performer, MetricStretchesQueriesAndKeys) {
  const at::Tensor q = wave({1, 1, 6, 4}), k = wave({1, 1, 6, 4}, 0.3), v = wave({1, 1, 6, 4}, 0.9);
  const AttentionShape shape{.dim = 4, .num_heads = 1, .layer = 1, .num_layers = 2};
  Pass pass;
  pass.previous_q = q;
  pass.previous_v = wave({1, 1, 6, 4}, 0.5);
  PerformerOptions options;
  options.is_elliptical = true;
  Trace trace;
  pass.trace = &trace;
  const at::Tensor out = make_performer_mixer(options, shape)->mix({q, k, v, v}, pass, nullptr);
  const at::Tensor root = trace.tensors.at("layers.0.metric").sqrt();
  ASSERT_EQ(root.sizes(), (at::IntArrayRef{1, 1, 1, 4}));
  options.is_elliptical = false;
  pass.trace = nullptr;
  const at::Tensor expected =
      make_performer_mixer(options, shape)->mix({q * root, k * root, v, v}, pass, nullptr);
  EXPECT_LE(number((out - expected).abs().max()), 1e-6);
}

TEST(Performer, AStreamKeepsNoKeys) {
  std::vector<std::unique_ptr<AttentionCache>> caches;
  const AttentionVariant variant{.attention = "performer"};
  AttentionShape shape{.dim = 12, .num_heads = 3, .is_causal = true};
  const auto mixer = make_performer_mixer({}, shape);
  EXPECT_FALSE(mixer->needs_past());
  std::unique_ptr<MixerState> state;
  Pass pass;
  pass.is_causal = true;
  const at::Tensor q = wave({1, 3, 5, 4}), k = wave({1, 3, 5, 4}, 0.3), v = wave({1, 3, 5, 4}, 0.9);
  const at::Tensor whole = mixer->mix({q, k, v, v}, pass, nullptr);
  const auto piece = [&](const at::Tensor& t, int64_t n) { return t.narrow(2, n, 1); };
  for (int64_t n = 0; n < 5; ++n) {
    const at::Tensor out =
        mixer->mix({piece(q, n), piece(k, n), piece(v, n), piece(v, n)}, pass, &state);
    EXPECT_LE(number((out - piece(whole, n)).abs().max()), 1e-6);
  }
}

}  // namespace
}  // namespace elliptical::nn::performer_test
