// SPDX-License-Identifier: MIT
//
// What the metric must satisfy: the identities of its definition, the lemmas on it, agreement of the
// fused kernel and the composite. What every estimator owes is in metric_estimators_test.cpp.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

#include "elliptical/ops/attention.h"
#include "elliptical/ops/metric.h"
#include "tests/support/metric_cases.h"

namespace elliptical::metric_test {
namespace {

using ops::metric;
using ops::MetricEstimator;
using ops::MetricInputs;
using ops::MetricOptions;
using ops::MetricScaling;
using ops::MetricScope;
using support::all_inputs;

constexpr int64_t B = support::kMetricB, H = support::kMetricH, N = support::kMetricN,
                  D = support::kMetricD;

at::Tensor normal(at::IntArrayRef sizes = {B, H, N, D}, at::ScalarType type = torch::kDouble) {
  return torch::randn(sizes, type);
}

class Metric : public ::testing::Test {
 protected:
  void SetUp() override { torch::manual_seed(20241210); }
};

TEST_F(Metric, KernelEqualsComposite) {
  for (const MetricScope scope : {MetricScope::kSequence, MetricScope::kPrefix})
    for (const MetricScaling scaling :
         {MetricScaling::kMax, MetricScaling::kMean, MetricScaling::kNone}) {
      const at::Tensor v = normal({B, N, H, D}, torch::kFloat).transpose(1, 2);
      const at::Tensor v_prev = normal({B, N, H, D}, torch::kFloat).transpose(1, 2);
      const MetricOptions options{.scope = scope,
                                  .scaling = scaling,
                                  .delta = 2.0,
                                  .lengths = torch::tensor({int64_t{5}, N}, torch::kLong)};
      const at::Tensor exact = metric(v.to(torch::kDouble), v_prev.to(torch::kDouble), options);
      EXPECT_TRUE(torch::allclose(metric(v, v_prev, options).to(torch::kDouble), exact, 1e-6, 0));
      const at::Tensor half =
          metric(v.to(torch::kBFloat16), v_prev.to(torch::kBFloat16), options).to(torch::kDouble);
      EXPECT_TRUE(torch::allclose(half, exact, 0.02, 0.01));
    }
}

// VAR-1: a constant delta cancels when rows are scaled.
TEST_F(Metric, DeltaCancelsWhenScaled) {
  const at::Tensor v = normal(), v_prev = normal();
  for (const MetricScaling scaling : {MetricScaling::kMax, MetricScaling::kMean}) {
    EXPECT_TRUE(torch::allclose(metric(v, v_prev, {.scaling = scaling, .delta = 1.0}),
                                metric(v, v_prev, {.scaling = scaling, .delta = 5.0}), 1e-14, 0));
  }
  const at::Tensor ratio = metric(v, v_prev, {.scaling = MetricScaling::kNone, .delta = 1.0}) /
                           metric(v, v_prev, {.scaling = MetricScaling::kNone, .delta = 5.0});
  EXPECT_TRUE(torch::allclose(ratio, torch::full_like(ratio, 5.0)));
}

// VAR-2: 0 <= m <= 1 with maximum exactly 1; or mean 1.
TEST_F(Metric, IsScaledToItsMaximumOrMean) {
  for (const at::ScalarType type : {torch::kFloat, torch::kDouble}) {
    const at::Tensor v = normal({B, H, N, D}, type), v_prev = normal({B, H, N, D}, type);
    const at::Tensor by_max = metric(v, v_prev, {.scope = MetricScope::kPrefix});
    EXPECT_TRUE(by_max.ge(0).all().item<bool>());
    EXPECT_TRUE(by_max.amax(-1).eq(1).all().item<bool>());
    const at::Tensor by_mean = metric(v, v_prev, {.scaling = MetricScaling::kMean}).mean(-1);
    EXPECT_TRUE(torch::allclose(by_mean, torch::ones_like(by_mean)));
  }
}

// VAR-3: joint scaling of the values and the order of the tokens do not matter.
TEST_F(Metric, DoesNotSeeScaleOrOrder) {
  const at::Tensor v = normal(), v_prev = normal();
  const at::Tensor m = metric(v, v_prev), order = torch::randperm(N);
  EXPECT_TRUE(torch::allclose(metric(7 * v, 7 * v_prev), m));
  EXPECT_TRUE(torch::allclose(metric(v.index_select(2, order), v_prev.index_select(2, order)), m));
}

// VAR-4: v - v_prev ~ N(0, 2 sigma^2) gives E s = 2 sigma / sqrt(pi).
TEST_F(Metric, MeasuresTheMeanOfAHalfNormal) {
  constexpr double kSigma = 0.7;
  const at::Tensor s =
      metric(kSigma * normal({1, 1, 200'000, D}), kSigma * normal({1, 1, 200'000, D}),
             {.scaling = MetricScaling::kNone});
  // The standard error is about 0.6 sigma sqrt(2) / sqrt(200,000) = 0.0013.
  EXPECT_LT((s - 2 * kSigma / std::sqrt(M_PI)).abs().max().item<double>(), 0.007);
}

// VAR-5: for f_i(k) = a_i g(k_i) the order of m is that of a, and noise moves s by at most
// 2 sigma / sqrt(pi) in the mean (the paper's lemma).
TEST_F(Metric, OrdersCoordinatesByTheirVariability) {
  constexpr double kDelta = 0.1, kSigma = 0.01;
  const at::Tensor a = torch::tensor({3.0, 0.2, 1.0, 2.0, 0.5}, torch::kDouble);
  const at::Tensor k = normal({1, 1, 20'000, D});
  const at::Tensor step = torch::where(torch::rand_like(k) < 0.5, -kDelta, kDelta);
  const auto f = [&](const at::Tensor& x) { return a * torch::sin(x); };
  const MetricOptions options{.scaling = MetricScaling::kNone, .delta = kDelta};
  const at::Tensor s = metric(f(k + step), f(k), options);
  EXPECT_TRUE(s.flatten().argsort().equal(a.argsort()));
  const at::Tensor noisy = metric(f(k + step) + kSigma * torch::randn_like(k),
                                  f(k) + kSigma * torch::randn_like(k), options);
  EXPECT_LE((noisy - s).abs().max().item<double>(), 2 * kSigma / std::sqrt(M_PI) / kDelta);
}

// VAR-6: as t -> 0 the central difference is the Jacobian's column norm, which `jacobian` gives.
TEST_F(Metric, ConsistentTendsToTheJacobian) {
  for (const bool is_causal : {false, true})
    for (const MetricScope scope : {MetricScope::kSequence, MetricScope::kPrefix}) {
      const MetricInputs inputs = all_inputs();
      MetricOptions options{.estimator = "jacobian",
                            .scope = scope,
                            .scaling = MetricScaling::kNone,
                            .is_causal = is_causal,
                            .scale = 0.8,
                            .query_stride = 1,
                            .lengths = torch::tensor({int64_t{7}, N}, torch::kLong)};
      const at::Tensor jacobian = metric(inputs, options);
      options.estimator = "consistent";
      options.step = 1e-5;
      EXPECT_TRUE(torch::allclose(metric(inputs, options), jacobian, 1e-6, 1e-8));
    }
}

TEST_F(Metric, JacobianIsThatOfAutograd) {
  const MetricInputs inputs = all_inputs();
  const at::Tensor s =
      metric(inputs, {.estimator = "jacobian", .scaling = MetricScaling::kNone, .query_stride = 1});
  const at::Tensor q = inputs.q->detach().requires_grad_();
  const at::Tensor out = ops::attention(q, *inputs.k, inputs.v);
  at::Tensor expected = torch::zeros({B, H, N, D}, torch::kDouble);
  for (int64_t c = 0; c < D; ++c) {
    expected += torch::autograd::grad({out.select(3, c).sum()}, {q}, {}, true)[0].abs();
  }
  EXPECT_TRUE(torch::allclose(s, expected.mean(2, true)));
}

TEST_F(Metric, ConsistentOnALinearMapGivesColumnNorms) {
  // One visible key makes attention constant; a linear h needs none of it, so: all logits equal to
  // first order. With two keys k = +-K e_i and small scale, h is linear in q to O(scale^3).
  const at::Tensor k = torch::stack({torch::eye(D, torch::kDouble), -torch::eye(D, torch::kDouble)})
                           .reshape({1, 1, 2 * D, D});
  const at::Tensor v = normal({1, 1, 2 * D, D});
  const at::Tensor q = torch::zeros({1, 1, 2 * D, D}, torch::kDouble);
  const double scale = 1e-4;
  // h(q) = mean v + scale / (2 D) sum_i q_i (v_i - v_{D+i}) + O(scale^2): column i of W.
  const at::Tensor W = (v.narrow(2, 0, D) - v.narrow(2, D, D)) * (scale / (2 * D));
  for (const double step : {0.1, 1.0, 3.0}) {
    const at::Tensor s = metric(
        {.v = v, .q = q, .k = k},
        {.estimator = "consistent", .scaling = MetricScaling::kNone, .step = step, .scale = scale});
    EXPECT_TRUE(torch::allclose(s.flatten(), W.abs().sum(-1).flatten(), 1e-4, 0)) << step;
  }
}

// VAR-8: d softmax_j / d q_i = m_i (k_ji - sum_s p_s k_si) p_j and its bound.
// VAR-9: |h(q) - h(q + e)| <= sum_j sqrt(sum_i kappa_ij^2 m_i^2) |v_j| |e|.
TEST_F(Metric, LemmasOnTheJacobianHold) {
  const at::Tensor q = normal({1, 1, 1, D}).requires_grad_(), k = normal({1, 1, N, D}),
                   v = normal({1, 1, N, D}), m = torch::rand({1, 1, 1, D}, torch::kDouble);
  const ops::AttentionOptions unscaled{.scale = 1.0};
  const at::Tensor p =  // v = identity shows the probabilities
      ops::attention(q, k, torch::eye(N, torch::kDouble).expand({1, 1, N, N}), m, unscaled)
          .flatten();
  const at::Tensor keys = k.squeeze(0).squeeze(0), row = m.flatten();  // (N, D), (D)
  const at::Tensor mean_key = p.detach().matmul(keys);
  const at::Tensor kappa = keys.abs() / 4 + keys.abs().sum(0) - keys.abs();  // (N, D)
  for (int64_t j = 0; j < N; ++j) {
    const at::Tensor given = torch::autograd::grad({p[j]}, {q}, {}, true)[0].flatten();
    EXPECT_TRUE(torch::allclose(given, row * (keys[j] - mean_key) * p[j].detach()));
    EXPECT_TRUE((given.abs() <= row * kappa[j]).all().item<bool>());
  }
  const double bound =
      ((kappa * row).norm(2, 1) * v.squeeze(0).squeeze(0).norm(2, 1)).sum().item<double>();
  const torch::NoGradGuard no_grad;
  for (int draw = 0; draw < 50; ++draw) {
    const at::Tensor e = normal({1, 1, 1, D});
    const at::Tensor moved =
        ops::attention(q + e, k, v, m, unscaled) - ops::attention(q, k, v, m, unscaled);
    EXPECT_LE(moved.norm().item<double>(), bound * e.norm().item<double>());
  }
}

// VAR-10: one wild token hardly moves the median, and takes the mean over.
TEST_F(Metric, TheMedianIsRobustTheMeanIsNot) {
  const at::Tensor v = normal({1, 1, 200, D}), v_prev = normal({1, 1, 200, D});
  const at::Tensor wild = v.clone();
  wild.select(2, 17).select(2, 0).mul_(1e6);
  const auto moved = [&](MetricEstimator estimator) {
    const MetricOptions options{.estimator = estimator};
    return (metric(wild, v_prev, options) - metric(v, v_prev, options)).abs().max().item<double>();
  };
  EXPECT_LT(moved("median"), 0.1);
  EXPECT_GT(moved("difference"), 0.5);
}

TEST_F(Metric, MedianIsTheLowerOne) {
  const at::Tensor v = torch::tensor({4.0, 1.0, 3.0, 2.0}, torch::kDouble).view({1, 1, 4, 1});
  const MetricOptions options{
      .estimator = "median", .scope = MetricScope::kPrefix, .scaling = MetricScaling::kNone};
  EXPECT_TRUE(metric(v, torch::zeros_like(v), options)
                  .flatten()
                  .equal(torch::tensor({4.0, 1.0, 3.0, 2.0}, torch::kDouble)));
}

TEST_F(Metric, QuotientDividesByTheChangeOfTheQueries) {
  const MetricInputs in = all_inputs();
  const at::Tensor expected =
      ((in.v - *in.v_prev).abs() / ((*in.q - *in.q_prev).abs() + 0.25)).mean(2, true);
  EXPECT_TRUE(torch::allclose(
      metric(in, {.estimator = "quotient", .scaling = MetricScaling::kNone, .attenuation = 0.25}),
      expected));
}

TEST_F(Metric, RandomIsFreshFixedIsNot) {
  const MetricInputs inputs = all_inputs();
  const MetricOptions random{.estimator = "random", .low = 0.3};
  EXPECT_FALSE(metric(inputs, random).equal(metric(inputs, random)));
  EXPECT_FALSE(metric(inputs, random).select(0, 0).equal(metric(inputs, random).select(0, 1)));
  MetricOptions fixed{.estimator = "random_fixed", .seed = 1};
  const at::Tensor first = metric(inputs, fixed);
  EXPECT_TRUE(first.equal(metric(inputs, fixed)));
  EXPECT_TRUE(first.select(0, 0).equal(first.select(0, 1)));   // the same for every batch item
  EXPECT_FALSE(first.select(1, 0).equal(first.select(1, 1)));  // not for every head
  fixed.seed = 2;
  EXPECT_FALSE(first.equal(metric(inputs, fixed)));
  fixed.low = 0.9;
  fixed.scaling = MetricScaling::kNone;
  EXPECT_TRUE(metric(inputs, fixed).ge(0.9).all().item<bool>());
}

TEST_F(Metric, ConstantControlsAreWhatTheySay) {
  const MetricInputs inputs = all_inputs();
  for (const MetricEstimator estimator :
       {MetricEstimator("constant"), MetricEstimator("matched")}) {
    EXPECT_TRUE(
        metric(inputs, {.estimator = estimator, .value = 0.25}).eq(0.25).all().item<bool>());
  }
  const at::Tensor t = torch::rand({H}, torch::kDouble).requires_grad_();
  const at::Tensor m = metric(inputs, {.estimator = "temperature", .temperature = t});
  EXPECT_TRUE(m.select(3, 2).select(0, 1).flatten().equal(t));
  EXPECT_TRUE(torch::autograd::grad({m.sum()}, {t})[0].eq(B * D).all().item<bool>());
}

TEST_F(Metric, IsotropicIsTheMeanOfEachRow) {
  const MetricInputs inputs = all_inputs();
  const at::Tensor m = metric(inputs, {.scope = MetricScope::kPrefix});
  EXPECT_TRUE(
      torch::allclose(metric(inputs, {.estimator = "isotropic", .scope = MetricScope::kPrefix}),
                      m.mean(-1, true).expand_as(m)));
}

}  // namespace
}  // namespace elliptical::metric_test
