// SPDX-License-Identifier: MIT
//
// Wrong arguments of the metric: each message is read, word for word.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>

#include "elliptical/ops/metric.h"
#include "elliptical/ops/prefix_metric.h"
#include "tests/support/torch_refusal.h"

namespace elliptical::metric_checks_test {
namespace {

using ops::MetricEstimator;
using support::refusal;

/// A call that is right for every estimator; each case breaks one thing.
struct Call {
  ops::MetricInputs inputs{.v = torch::zeros({2, 3, 4, 5}),
                           .v_prev = torch::zeros({2, 3, 4, 5}),
                           .q = torch::zeros({2, 3, 4, 5}),
                           .k = torch::zeros({2, 3, 4, 5}),
                           .q_prev = torch::zeros({2, 3, 4, 5})};
  ops::MetricOptions options{.temperature = torch::ones({3})};
};

struct WrongCall {
  std::string name;
  std::function<void(Call&)> spoil;
  std::string message;
};

std::ostream& operator<<(std::ostream& stream, const WrongCall& c) { return stream << c.name; }

std::function<void(Call&)> with(MetricEstimator estimator, std::function<void(Call&)> spoil) {
  return [=](Call& c) {
    c.options.estimator = estimator;
    spoil(c);
  };
}

std::vector<WrongCall> wrong_calls() {
  return {
      {"v_rank", [](Call& c) { c.inputs.v = torch::zeros({4, 5}); },
       "metric: v must be (B, H, N, D), got (4, 5)"},
      {"v_integer", [](Call& c) { c.inputs.v = c.inputs.v.to(torch::kLong); },
       "metric: v must have a floating point dtype, got Long"},
      {"no_v_prev", [](Call& c) { c.inputs.v_prev.reset(); },
       "metric: v_prev must be given for the estimator difference, got none"},
      {"v_prev_shape", [](Call& c) { c.inputs.v_prev = torch::zeros({2, 3, 5, 5}); },
       "metric: v_prev must have v's shape (2, 3, 4, 5), got (2, 3, 5, 5)"},
      {"v_prev_dtype", [](Call& c) { c.inputs.v_prev = c.inputs.v.to(torch::kDouble); },
       "metric: v_prev must have v's dtype Float, got Double"},
      {"v_prev_device", [](Call& c) { c.inputs.v_prev = c.inputs.v.to(torch::kMeta); },
       "metric: v_prev must be on v's device cpu, got meta"},
      {"delta", [](Call& c) { c.options.delta = 0; },
       "metric: delta must be positive and finite, got 0"},
      {"lengths_dtype", [](Call& c) { c.options.lengths = torch::ones({2}); },
       "metric: lengths must have dtype Long, got Float"},
      {"lengths_shape", [](Call& c) { c.options.lengths = torch::ones({3}, torch::kLong); },
       "metric: lengths must be (B) = (2), got (3)"},
      {"lengths_device",
       [](Call& c) {
         c.options.lengths =
             torch::ones({2}, torch::TensorOptions(torch::kMeta).dtype(torch::kLong));
       },
       "metric: lengths must be on v's device cpu, got meta"},
      {"lengths_negative",
       [](Call& c) { c.options.lengths = torch::tensor({-1, 4}, torch::kLong); },
       "metric: lengths must be between 0 and N = 4, got -1 at index 0"},
      {"lengths_too_long",
       with("median", [](Call& c) { c.options.lengths = torch::tensor({4, 5}, torch::kLong); }),
       "metric: lengths must be between 0 and N = 4, got 5 at index 1"},
      {"no_q_prev", with("quotient", [](Call& c) { c.inputs.q_prev.reset(); }),
       "metric: q_prev must be given for the estimator quotient, got none"},
      {"attenuation", with("quotient", [](Call& c) { c.options.attenuation = -1; }),
       "metric: attenuation must be positive and finite, got -1"},
      {"no_q", with("consistent", [](Call& c) { c.inputs.q.reset(); }),
       "metric: q must be given for the estimator consistent, got none"},
      {"q_shape", with("consistent", [](Call& c) { c.inputs.q = torch::zeros({2, 4, 4, 5}); }),
       "metric: q must be (B, H, N, D) = (2, a multiple of 3, 4, D), got (2, 4, 4, 5)"},
      {"k_shape", with("jacobian", [](Call& c) { c.inputs.k = torch::zeros({2, 3, 4, 6}); }),
       "metric: k must be (B, Hk, N, D) = (2, 3, 4, 5), got (2, 3, 4, 6)"},
      {"step", with("consistent", [](Call& c) { c.options.step = 0; }),
       "metric: step must be positive and finite, got 0"},
      {"query_stride", with("jacobian", [](Call& c) { c.options.query_stride = 0; }),
       "metric: query_stride must be at least 1, got 0"},
      {"low", with("random", [](Call& c) { c.options.low = 1; }),
       "metric: low must be in [0, 1), got 1"},
      {"value", with("matched", [](Call& c) { c.options.value = -0.5; }),
       "metric: value must be finite and not negative, got -0.5"},
      {"no_temperature", with("temperature", [](Call& c) { c.options.temperature.reset(); }),
       "metric: temperature must be given for the estimator temperature, got none"},
      {"temperature_shape",
       with("temperature", [](Call& c) { c.options.temperature = torch::ones({2}); }),
       "metric: temperature must be (H) = (3), got (2)"},
  };
}

class MetricChecks : public ::testing::TestWithParam<WrongCall> {};

TEST_P(MetricChecks, K4NameTheArgument) {
  Call call;
  GetParam().spoil(call);
  EXPECT_EQ(refusal([&] { ops::metric(call.inputs, call.options); }), GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(Cases,
                         MetricChecks,
                         ::testing::ValuesIn(wrong_calls()),
                         [](const auto& test) { return test.param.name; });

TEST(MetricChecks, AcceptTheUnspoiledCallWithEveryEstimator) {
  for (const MetricEstimator estimator : ops::metric_estimators()) {
    Call call;
    call.options.estimator = estimator;
    EXPECT_EQ(refusal([&] { ops::metric(call.inputs, call.options); }), "accepted")
        << estimator->name;
  }
}

TEST(MetricNames, GoBothWays) {
  EXPECT_EQ(ops::to_string(ops::metric_scope("prefix")), "prefix");
  EXPECT_EQ(ops::to_string(ops::metric_scaling("none")), "none");
}

TEST(MetricNames, SuggestTheNearest) {
  EXPECT_EQ(refusal([] { ops::metric_estimator("diference"); }),
            "metric: estimator: unknown \"diference\", did you mean \"difference\"?");
  EXPECT_EQ(refusal([] { ops::metric_scope("prefx"); }),
            "metric: scope: unknown \"prefx\", did you mean \"prefix\"?");
  EXPECT_EQ(refusal([] { ops::metric_scaling("softmax2000"); }),
            "metric: scaling: unknown \"softmax2000\", known: max, mean, none");
}

TEST(PrefixMetricChecks, AStreamKeepsItsShape) {
  ops::PrefixMetricState state;
  state.update(torch::zeros({2, 3, 1, 5}), torch::ones({2, 3, 1, 5}));
  EXPECT_EQ(refusal([&] { state.update(torch::zeros({1, 3, 1, 5}), torch::ones({1, 3, 1, 5})); }),
            "metric: v must continue the stream of shape (2, 3, 1, 5), got (1, 3, 1, 5)");
  EXPECT_EQ(state.count(), 1);
}

}  // namespace
}  // namespace elliptical::metric_checks_test
