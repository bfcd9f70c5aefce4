// SPDX-License-Identifier: MIT
//
// What every estimator of the metric must satisfy: the identities of its definition, agreement of
// the fused kernel and the composite, padding and causality.
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

#include "elliptical/ops/attention.h"
#include "elliptical/ops/metric.h"

namespace elliptical {
namespace {

using ops::metric;
using ops::MetricEstimator;
using ops::MetricInputs;
using ops::MetricOptions;
using ops::MetricScaling;
using ops::MetricScope;

constexpr int64_t B = 2, H = 3, N = 12, D = 5;

at::Tensor normal(at::IntArrayRef sizes = {B, H, N, D}, at::ScalarType type = torch::kDouble) {
  return torch::randn(sizes, type);
}

class Metric : public ::testing::Test {
 protected:
  void SetUp() override { torch::manual_seed(20241210); }
};

/// Inputs and options with everything any estimator may need.
MetricInputs all_inputs(at::ScalarType type = torch::kDouble) {
  return {.v = normal({B, H, N, D}, type),
          .v_prev = normal({B, H, N, D}, type),
          .q = normal({B, H, N, D}, type),
          .k = normal({B, H, N, D}, type),
          .q_prev = normal({B, H, N, D}, type)};
}

MetricOptions all_options(MetricEstimator estimator, MetricScope scope) {
  return {.estimator = estimator,
          .scope = scope,
          .query_stride = 3,
          .low = 0.3,
          .seed = 4,
          .value = 0.6,
          .temperature = torch::rand({H}, torch::kDouble)};
}

std::vector<MetricEstimator> estimators() {
  std::vector<MetricEstimator> all;
  for (const std::string& name : ops::metric_estimator_names()) {
    all.push_back(ops::metric_estimator(name));
  }
  return all;
}

/// The metric with a generator in its first state: `random` draws the same in every call.
at::Tensor repeatable(const MetricInputs& inputs, MetricOptions options) {
  options.generator = at::make_generator<at::CPUGeneratorImpl>(5);
  return metric(inputs, options);
}

class EveryEstimator : public ::testing::TestWithParam<MetricEstimator> {
 protected:
  void SetUp() override { torch::manual_seed(20241210); }
};

INSTANTIATE_TEST_SUITE_P(Metric,
                         EveryEstimator,
                         ::testing::ValuesIn(estimators()),
                         [](const auto& test) { return std::string(ops::to_string(test.param)); });

TEST_P(EveryEstimator, HasTheShapeOfItsScopeAndIsDetached) {
  MetricInputs inputs = all_inputs();
  inputs.v.requires_grad_();
  const at::Tensor row = metric(inputs, all_options(GetParam(), MetricScope::kSequence));
  EXPECT_EQ(row.sizes(), at::IntArrayRef({B, H, 1, D}));
  const at::Tensor rows = metric(inputs, all_options(GetParam(), MetricScope::kPrefix));
  EXPECT_EQ(rows.sizes(), at::IntArrayRef({B, H, N, D}));
  EXPECT_FALSE(row.requires_grad());
  EXPECT_TRUE(row.ge(0).all().item<bool>());
  EXPECT_TRUE(rows.isfinite().all().item<bool>());
}

TEST_P(EveryEstimator, SeesNoFutureInThePrefixScope) {
  const MetricInputs inputs = all_inputs();
  const MetricOptions options = all_options(GetParam(), MetricScope::kPrefix);
  const at::Tensor before = repeatable(inputs, options);
  for (const at::Tensor& t : {inputs.v, *inputs.v_prev, *inputs.q, *inputs.k, *inputs.q_prev}) {
    t.narrow(2, 7, N - 7).normal_();
  }
  const at::Tensor after = repeatable(inputs, options);
  EXPECT_TRUE(torch::allclose(before.narrow(2, 0, 7), after.narrow(2, 0, 7), 1e-12, 1e-12));
}

TEST_P(EveryEstimator, LastPrefixRowIsTheSequence) {
  const MetricInputs inputs = all_inputs();
  MetricOptions options = all_options(GetParam(), MetricScope::kSequence);
  options.is_causal = true;  // as the prefix scope implies
  const at::Tensor row = repeatable(inputs, options);
  options.scope = MetricScope::kPrefix;
  EXPECT_TRUE(torch::allclose(repeatable(inputs, options).narrow(2, N - 1, 1), row, 1e-12, 1e-12));
}

TEST_P(EveryEstimator, IgnoresPaddingWhateverItHolds) {
  for (const MetricScope scope : {MetricScope::kSequence, MetricScope::kPrefix}) {
    MetricInputs inputs = all_inputs();
    MetricOptions options = all_options(GetParam(), scope);
    const auto first_tokens = [&](const at::Tensor& t) { return t.narrow(2, 0, 7); };
    const MetricInputs shorter{first_tokens(inputs.v), first_tokens(*inputs.v_prev),
                               first_tokens(*inputs.q), first_tokens(*inputs.k),
                               first_tokens(*inputs.q_prev)};
    const at::Tensor expected = repeatable(shorter, options);
    for (const at::Tensor& t : {inputs.v, *inputs.v_prev, *inputs.q, *inputs.k, *inputs.q_prev}) {
      t.narrow(2, 7, N - 7).fill_(std::nan(""));
    }
    options.lengths = torch::full({B}, 7, torch::kLong);
    const at::Tensor padded = repeatable(inputs, options).narrow(2, 0, expected.size(2));
    EXPECT_TRUE(torch::allclose(padded, expected, 1e-12, 1e-12)) << ops::to_string(scope);
  }
}

TEST_P(EveryEstimator, NoTokensGiveOnesOrTheControl) {
  MetricInputs inputs = all_inputs();
  for (std::optional<at::Tensor>* t : {&inputs.v_prev, &inputs.q, &inputs.k, &inputs.q_prev}) {
    *t = normal({B, H, 0, D});
  }
  inputs.v = normal({B, H, 0, D});
  EXPECT_TRUE(metric(inputs, all_options(GetParam(), MetricScope::kSequence))
                  .isfinite()
                  .all()
                  .item<bool>());
  EXPECT_EQ(metric(inputs, all_options(GetParam(), MetricScope::kPrefix)).sizes(),
            at::IntArrayRef({B, H, 0, D}));
}

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
      MetricOptions options{.estimator = MetricEstimator::kJacobian,
                            .scope = scope,
                            .scaling = MetricScaling::kNone,
                            .is_causal = is_causal,
                            .scale = 0.8,
                            .query_stride = 1,
                            .lengths = torch::tensor({int64_t{7}, N}, torch::kLong)};
      const at::Tensor jacobian = metric(inputs, options);
      options.estimator = MetricEstimator::kConsistent;
      options.step = 1e-5;
      EXPECT_TRUE(torch::allclose(metric(inputs, options), jacobian, 1e-6, 1e-8));
    }
}

TEST_F(Metric, JacobianIsThatOfAutograd) {
  const MetricInputs inputs = all_inputs();
  const at::Tensor s = metric(inputs, {.estimator = MetricEstimator::kJacobian,
                                       .scaling = MetricScaling::kNone,
                                       .query_stride = 1});
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
    const at::Tensor s =
        metric({.v = v, .q = q, .k = k}, {.estimator = MetricEstimator::kConsistent,
                                          .scaling = MetricScaling::kNone,
                                          .step = step,
                                          .scale = scale});
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
  EXPECT_LT(moved(MetricEstimator::kMedian), 0.1);
  EXPECT_GT(moved(MetricEstimator::kDifference), 0.5);
}

TEST_F(Metric, MedianIsTheLowerOne) {
  const at::Tensor v = torch::tensor({4.0, 1.0, 3.0, 2.0}, torch::kDouble).view({1, 1, 4, 1});
  const MetricOptions options{.estimator = MetricEstimator::kMedian,
                              .scope = MetricScope::kPrefix,
                              .scaling = MetricScaling::kNone};
  EXPECT_TRUE(metric(v, torch::zeros_like(v), options)
                  .flatten()
                  .equal(torch::tensor({4.0, 1.0, 3.0, 2.0}, torch::kDouble)));
}

TEST_F(Metric, QuotientDividesByTheChangeOfTheQueries) {
  const MetricInputs in = all_inputs();
  const at::Tensor expected =
      ((in.v - *in.v_prev).abs() / ((*in.q - *in.q_prev).abs() + 0.25)).mean(2, true);
  EXPECT_TRUE(torch::allclose(metric(in, {.estimator = MetricEstimator::kQuotient,
                                          .scaling = MetricScaling::kNone,
                                          .attenuation = 0.25}),
                              expected));
}

TEST_F(Metric, RandomIsFreshFixedIsNot) {
  const MetricInputs inputs = all_inputs();
  const MetricOptions random{.estimator = MetricEstimator::kRandom, .low = 0.3};
  EXPECT_FALSE(metric(inputs, random).equal(metric(inputs, random)));
  EXPECT_FALSE(metric(inputs, random).select(0, 0).equal(metric(inputs, random).select(0, 1)));
  MetricOptions fixed{.estimator = MetricEstimator::kRandomFixed, .seed = 1};
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
  for (const MetricEstimator estimator : {MetricEstimator::kConstant, MetricEstimator::kMatched}) {
    EXPECT_TRUE(
        metric(inputs, {.estimator = estimator, .value = 0.25}).eq(0.25).all().item<bool>());
  }
  const at::Tensor t = torch::rand({H}, torch::kDouble).requires_grad_();
  const at::Tensor m =
      metric(inputs, {.estimator = MetricEstimator::kTemperature, .temperature = t});
  EXPECT_TRUE(m.select(3, 2).select(0, 1).flatten().equal(t));
  EXPECT_TRUE(torch::autograd::grad({m.sum()}, {t})[0].eq(B * D).all().item<bool>());
}

TEST_F(Metric, IsotropicIsTheMeanOfEachRow) {
  const MetricInputs inputs = all_inputs();
  const at::Tensor m = metric(inputs, {.scope = MetricScope::kPrefix});
  EXPECT_TRUE(torch::allclose(
      metric(inputs, {.estimator = MetricEstimator::kIsotropic, .scope = MetricScope::kPrefix}),
      m.mean(-1, true).expand_as(m)));
}

}  // namespace
}  // namespace elliptical
