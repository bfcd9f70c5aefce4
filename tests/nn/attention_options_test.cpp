// SPDX-License-Identifier: MIT
//
// Every option has an effect, presets are what they say, and what makes no sense is refused in
// words.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <map>

#include "elliptical/base/config.h"
#include "elliptical/base/errors.h"
#include "elliptical/nn/attention/elliptical.h"
#include "tests/support/attention_stack.h"
#include "tests/support/attention_variants.h"
#include "tests/support/golden_heads.h"

namespace elliptical::nn::attention_options_test {
namespace {

using support::AttentionStack;
using support::AttentionVariant;
using support::wave;

constexpr AttentionShape kCausal{.dim = 12, .num_heads = 3, .is_causal = true};
constexpr AttentionShape kTwoSided{.dim = 12, .num_heads = 3};

std::vector<std::string> join(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

ChosenOptions elliptical_options(const std::vector<std::string>& assignments) {
  return AttentionVariant{.attention = "elliptical", .assignments = assignments}.options();
}

at::Tensor output(const ChosenOptions& options, const AttentionShape& shape = kTwoSided) {
  return AttentionStack(options, shape).forward(wave({2, 20, 12}));
}

/// The gradient of the input, which tells `detached` and `through` apart.
at::Tensor input_gradient(const ChosenOptions& options) {
  const at::Tensor x = wave({2, 20, 12}).requires_grad_();
  AttentionStack(options, kTwoSided).forward(x).square().sum().backward();
  return x.grad();
}

std::string refusal(const std::vector<std::string>& assignments, const AttentionShape& shape) {
  try {
    AttentionStack(elliptical_options(assignments), shape);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(AttentionOptions, EachHasAnEffect) {
  const std::vector<std::pair<std::vector<std::string>, std::vector<std::string>>> changes{
      {{}, {"preset=released-lm"}},  {{}, {"preset=released-attack"}},
      {{}, {"metric.scope=prefix"}}, {{}, {"metric.scaling=mean"}},
      {{}, {"metric.scaling=none"}}, {{}, {"scale_logits=false"}},
  };
  for (const auto& [start, change] : changes) {
    EXPECT_FALSE(at::equal(output(elliptical_options(start)),
                           output(elliptical_options(join(start, change)))))
        << change[0];
  }
}

TEST(AttentionOptions, EachOfEveryEstimatorHasAnEffect) {
  const std::map<std::string, std::string> values{
      {"attenuation", "0.1"}, {"delta", "2"}, {"low", "0.3"}, {"points", "keys"},
      {"query_stride", "3"},  {"seed", "2"},  {"step", "2"},  {"value", "0.6"}};
  for (const ops::MetricEstimator estimator : ops::metric_estimators()) {
    std::vector<std::string> start{"metric.estimator=" + std::string(estimator->name)};
    if (estimator->has(ops::EstimatorOption::Field::kValue)) start.push_back("metric.value=0.5");
    if (estimator->is_scaled) start.push_back("metric.scaling=none");  // where delta cancels
    for (const ops::EstimatorOption* option : estimator->options) {
      if (option == nullptr) continue;
      ASSERT_TRUE(values.contains(option->name)) << "another value of " << option->name;
      const std::string change =
          std::string("metric.") + option->name + "=" + values.at(option->name);
      EXPECT_FALSE(at::equal(output(elliptical_options(start)),
                             output(elliptical_options(join(start, {change})))))
          << estimator->name << ", " << change;
    }
  }
}

// The paper's estimator is a mean over keys; the public code shifts queries.
TEST(AttentionOptions, PointsAreWhereTheOutputIsVaried) {
  const auto heads = support::golden_heads();
  const auto s = [&](const at::Tensor& points, ops::MetricEstimator estimator) {
    return ops::metric({.v = heads.v, .q = points, .k = heads.k},
                       {.estimator = estimator, .scaling = ops::MetricScaling::kNone});
  };
  for (const ops::MetricEstimator estimator : ops::metric_estimators()) {
    if (!estimator->has(ops::EstimatorOption::Field::kPoints)) continue;
    for (const MetricPoints points : {MetricPoints::kQueries, MetricPoints::kKeys}) {
      EllipticalOptions options;
      options.metric.estimator = estimator;
      options.metric.scaling = ops::MetricScaling::kNone;
      options.metric.points = points;
      Trace trace;
      Pass pass;
      pass.trace = &trace;
      pass.previous_q = heads.q;
      pass.previous_v = support::golden_previous_v();
      make_elliptical_mixer(options, support::golden_shape(false))->mix(heads, pass, nullptr);
      const at::Tensor& where = points == MetricPoints::kKeys ? heads.k : heads.q;
      EXPECT_TRUE(at::equal(trace.tensors.at("layers.0.metric"), s(where, estimator)));
    }
  }
  EXPECT_FALSE(at::allclose(s(heads.k, "consistent"), s(heads.q, "consistent"), 1e-2));
}

// The released code for attacks draws a random metric from [0.3, 1), that for training from [0, 1).
TEST(AttentionOptions, APassCanRaiseTheLowerEndOfARandomMetric) {
  const auto metric = [](const char* estimator, std::optional<double> low) {
    const AttentionStack stack(
        elliptical_options({std::string("metric.estimator=") + estimator, "metric.scaling=none"}),
        kTwoSided);
    Trace trace;
    Pass pass;
    pass.metric_low = low;
    pass.trace = &trace;
    stack.forward(wave({2, 7, kTwoSided.dim}), pass);
    return trace.tensors.at("layers.1.metric");
  };
  const at::Tensor trained = metric("random", {}), attacked = metric("random", 0.3);
  EXPECT_LT(trained.min().item<double>(), 0.3);
  EXPECT_TRUE(at::allclose(attacked, 0.3 + 0.7 * trained));
  EXPECT_TRUE(at::equal(metric("random_fixed", {}), metric("random_fixed", 0.3)));
}

TEST(AttentionOptions, EveryEstimatorDiffers) {
  std::vector<at::Tensor> outputs;
  for (const std::string& estimator : ops::metric_estimator_names()) {
    if (estimator == "matched") continue;  // a constant under its own name
    std::vector<std::string> assignments{"metric.estimator=" + estimator};
    if (estimator == "constant") assignments.push_back("metric.value=0.5");
    outputs.push_back(output(elliptical_options(assignments)));
    for (size_t i = 0; i + 1 < outputs.size(); ++i) {
      EXPECT_FALSE(at::equal(outputs[i], outputs.back())) << estimator << " and number " << i;
    }
  }
}

TEST(AttentionOptions, GradientPassesThroughTheMetricOnlyWhenAsked) {
  const ChosenOptions detached = elliptical_options({});
  const ChosenOptions through = elliptical_options({"metric_gradient=through"});
  // One is fused, the other composite.
  EXPECT_LE((output(detached) - output(through)).abs().max().item<double>(), 1e-4);
  EXPECT_FALSE(at::equal(input_gradient(detached), input_gradient(through)));
}

TEST(AttentionOptions, DeltaCancelsWhenScaled) {
  for (const char* scaling : {"metric.scaling=max", "metric.scaling=mean"}) {
    const at::Tensor one = output(elliptical_options({scaling, "metric.delta=1"}));
    const at::Tensor five = output(elliptical_options({scaling, "metric.delta=5"}));
    EXPECT_LE((one - five).abs().max().item<double>(), 1e-5) << scaling;
  }
}

TEST(AttentionOptions, ScopeFollowsTheModel) {
  EXPECT_TRUE(at::equal(output(elliptical_options({}), kCausal),
                        output(elliptical_options({"metric.scope=prefix"}), kCausal)));
  EXPECT_TRUE(at::equal(output(elliptical_options({}), kTwoSided),
                        output(elliptical_options({"metric.scope=sequence"}), kTwoSided)));
}

TEST(AttentionOptions, ScopeCanBeOverriddenForAPass) {
  const at::Tensor x = wave({2, 20, 12});
  Pass pass;
  pass.metric_scope = ops::MetricScope::kPrefix;
  EXPECT_TRUE(
      at::equal(AttentionStack(elliptical_options({}), kTwoSided).forward(x, pass),
                AttentionStack(elliptical_options({"metric.scope=prefix"}), kTwoSided).forward(x)));
}

TEST(AttentionOptions, CausalModelRefusesTheSequenceScope) {
  const char* expected =
      "attention: metric.scope must be \"prefix\" in a causal model, got \"sequence\": "
      "every token would see the ones after it through the metric (say metric_lookahead = true to "
      "reproduce the released form)";
  EXPECT_EQ(refusal({"metric.scope=sequence"}, kCausal), expected);
  EXPECT_EQ(refusal({"preset=released-lm"}, kCausal), expected);
  EXPECT_EQ(refusal({"preset=released-lm", "metric_lookahead=true"}, kCausal), "");
  EXPECT_EQ(refusal({"metric.scope=sequence"}, kTwoSided), "");
}

TEST(AttentionOptions, RecordsSayWhetherTheFutureLeaks) {
  const auto leaks = [](const std::vector<std::string>& assignments) {
    const AttentionStack stack(elliptical_options(assignments), kCausal);
    return std::get<bool>(stack.layers.back()->labels().at("leaks_future"));
  };
  EXPECT_FALSE(leaks({}));
  EXPECT_TRUE(leaks({"metric.scope=sequence", "metric_lookahead=true"}));
  EXPECT_FALSE(leaks({"metric.estimator=temperature"}));
}

TEST(AttentionOptions, ConstantsNeedTheirValue) {
  EXPECT_EQ(refusal({"metric.estimator=matched"}, kCausal),
            "attention: metric.value must be given for metric.estimator = \"matched\", "
            "got none (the mean of the metric that it stands in for)");
}

TEST(AttentionOptions, HeadsMustDivideTheWidth) {
  EXPECT_EQ(refusal({}, {.dim = 10, .num_heads = 3}),
            "attention: dim must be a multiple of num_heads, got dim = 10, num_heads = 3");
}

TEST(AttentionOptions, PresetsAreStartingPoints) {
  ChosenOptions chosen = elliptical_options({"preset=released-lm", "scale_logits=true"});
  const auto& options = chosen.get<EllipticalOptions>();
  EXPECT_EQ(options.metric.scope, ops::MetricScope::kSequence);
  EXPECT_TRUE(options.scale_logits) << "a field given beside the preset wins";
  EXPECT_TRUE(
      elliptical_options({"preset=released-attack"}).get<EllipticalOptions>().metric.estimator ==
      "median");
}

TEST(AttentionOptions, N1AnUnchangedLayerIsPlainAttention) {  // 0 / 0 in the metric
  Pass pass;
  pass.is_causal = true;
  const at::Tensor q = wave({1, 2, 5, 4}), k = wave({1, 2, 5, 4}, 0.3), v = wave({1, 2, 5, 4}, 0.9);
  pass.previous_q = q;
  pass.previous_v = v;
  AttentionShape shape = kCausal;
  shape.layer = 1;
  const at::Tensor out = make_elliptical_mixer({}, shape)->mix({q, k, v, v}, pass, nullptr);
  shape.layer = 0;
  EXPECT_TRUE(at::equal(out, make_elliptical_mixer({}, shape)->mix({q, k, v, v}, pass, nullptr)));
}

}  // namespace
}  // namespace elliptical::nn::attention_options_test
