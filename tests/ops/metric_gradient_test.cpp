// SPDX-License-Identifier: MIT
//
// Gradients through the metric, by finite differences in double, for every estimator that has one.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "elliptical/ops/attention.h"
#include "elliptical/ops/metric.h"
#include "tests/support/gradcheck.h"
#include "tests/support/layer_cases.h"

namespace elliptical {
namespace {

using ops::MetricEstimator;
using ops::MetricOptions;
using ops::MetricScaling;
using ops::MetricScope;

struct GradientCase {
  MetricEstimator estimator;
  MetricScope scope;
  MetricScaling scaling;
};

std::vector<GradientCase> gradient_cases() {
  std::vector<GradientCase> cases;
  for (const MetricEstimator estimator : ops::metric_estimators()) {
    if (!estimator->reads_tokens()) continue;
    for (const MetricScope scope : {MetricScope::kSequence, MetricScope::kPrefix})
      for (const MetricScaling scaling :
           {MetricScaling::kMax, MetricScaling::kMean, MetricScaling::kNone})
        cases.push_back({estimator, scope, scaling});
  }
  return cases;
}

class MetricGradient : public ::testing::TestWithParam<GradientCase> {
 protected:
  void SetUp() override { torch::manual_seed(3); }
};

TEST_P(MetricGradient, K7MatchesFiniteDifferences) {
  const MetricOptions options{.estimator = GetParam().estimator,
                              .scope = GetParam().scope,
                              .scaling = GetParam().scaling,
                              .delta = 1.5,
                              .differentiable = true,
                              .query_stride = 2,
                              .lengths = torch::tensor({4, 3}, torch::kLong)};
  const auto function = [&](const std::vector<at::Tensor>& x) -> std::vector<at::Tensor> {
    return {
        ops::metric({.v = x[0], .v_prev = x[1], .q = x[2], .k = x[3], .q_prev = x[4]}, options)};
  };
  const auto normal = [] { return torch::randn({2, 1, 4, 3}, torch::kDouble); };
  EXPECT_TRUE(
      support::gradients_match(function, {normal(), normal(), normal(), normal(), normal()}));
}

INSTANTIATE_TEST_SUITE_P(
    Cases, MetricGradient, ::testing::ValuesIn(gradient_cases()), [](const auto& test) {
      return c10::str(ops::to_string(test.param.estimator), "_", ops::to_string(test.param.scope),
                      "_", ops::to_string(test.param.scaling));
    });

TEST(MetricGradient, OfFloatsMatchesDouble) {
  torch::manual_seed(4);
  for (const MetricScaling scaling :
       {MetricScaling::kMax, MetricScaling::kMean, MetricScaling::kNone}) {
    for (const int64_t D : {1, 7, 16, 33}) {
      const support::LayerFunction metric = [&](const support::Tensors& x) {
        const auto heads = [](const at::Tensor& t) { return t.transpose(1, 2); };
        return ops::metric(heads(x[0]), heads(x[1]),
                           {.scaling = scaling, .delta = 1.5, .differentiable = true});
      };
      const auto normal = [&] { return torch::randn({2, 19, 3, D}); };
      EXPECT_TRUE(support::layers_match(metric, metric, {normal(), normal()}))
          << ops::to_string(scaling) << ", D " << D;
    }
  }
}

TEST(MetricGradient, ThroughTheWholeLayer) {
  torch::manual_seed(3);
  const auto function = [](const std::vector<at::Tensor>& x) -> std::vector<at::Tensor> {
    const at::Tensor m =
        ops::metric(x[2], x[3], {.scope = MetricScope::kPrefix, .differentiable = true});
    return {ops::attention(x[0], x[1], x[2], m, {.is_causal = true})};
  };
  const auto normal = [] { return torch::randn({1, 2, 4, 3}, torch::kDouble); };
  EXPECT_TRUE(support::gradients_match(function, {normal(), normal(), normal(), normal()}));
}

TEST(MetricGradient, IsZeroWhenNothingChanged) {
  for (const MetricScope scope : {MetricScope::kSequence, MetricScope::kPrefix}) {
    const at::Tensor v = torch::randn({1, 2, 4, 3}).requires_grad_();
    const at::Tensor m = ops::metric(v, v.detach(), {.scope = scope, .differentiable = true});
    EXPECT_TRUE(m.eq(1).all().item<bool>());
    EXPECT_TRUE(torch::autograd::grad({m.sum()}, {v})[0].eq(0).all().item<bool>());
  }
}

TEST(MetricGradient, IsZeroAtPaddingWhateverItHolds) {
  const at::Tensor v = torch::randn({1, 1, 4, 3});
  v.select(2, 3).fill_(std::numeric_limits<float>::quiet_NaN());
  const at::Tensor leaf = v.requires_grad_();
  const at::Tensor m =
      ops::metric(leaf, torch::zeros_like(v),
                  {.differentiable = true, .lengths = torch::tensor({3}, torch::kLong)});
  const at::Tensor gradient = torch::autograd::grad({m.select(3, 0).sum()}, {leaf})[0];
  EXPECT_TRUE(gradient.isfinite().all().item<bool>());
  EXPECT_TRUE(gradient.select(2, 3).eq(0).all().item<bool>());
}

}  // namespace
}  // namespace elliptical
