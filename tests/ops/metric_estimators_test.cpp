// SPDX-License-Identifier: MIT
//
// What every estimator of the table owes: shapes, padding, causality, and that its row is true, the
// row in docs/ops.md, too.
#include "elliptical/ops/metric_estimators.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <set>

#include "elliptical/ops/metric.h"
#include "elliptical/ops/prefix_metric.h"
#include "tests/support/metric_cases.h"
#include "tests/support/torch_refusal.h"

namespace elliptical::metric_estimators_test {
namespace {

using ops::EstimatorOption;
using ops::metric;
using ops::MetricEstimator;
using ops::MetricInputs;
using ops::MetricOptions;
using ops::MetricScaling;
using ops::MetricScope;
using support::all_inputs;
using support::all_options;
using support::refusal;
using support::repeatable_metric;

constexpr int64_t B = support::kMetricB, H = support::kMetricH, N = support::kMetricN,
                  D = support::kMetricD;

class EveryEstimator : public ::testing::TestWithParam<MetricEstimator> {
 protected:
  void SetUp() override { torch::manual_seed(20241210); }
};

INSTANTIATE_TEST_SUITE_P(Metric,
                         EveryEstimator,
                         ::testing::ValuesIn(ops::metric_estimators()),
                         [](const auto& test) { return std::string(test.param->name); });

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
  const at::Tensor before = repeatable_metric(inputs, options);
  for (const at::Tensor& t : {inputs.v, *inputs.v_prev, *inputs.q, *inputs.k, *inputs.q_prev}) {
    t.narrow(2, 7, N - 7).normal_();
  }
  const at::Tensor after = repeatable_metric(inputs, options);
  EXPECT_TRUE(torch::allclose(before.narrow(2, 0, 7), after.narrow(2, 0, 7), 1e-12, 1e-12));
}

TEST_P(EveryEstimator, LastPrefixRowIsTheSequence) {
  const MetricInputs inputs = all_inputs();
  MetricOptions options = all_options(GetParam(), MetricScope::kSequence);
  options.is_causal = true;  // as the prefix scope implies
  const at::Tensor row = repeatable_metric(inputs, options);
  options.scope = MetricScope::kPrefix;
  EXPECT_TRUE(
      torch::allclose(repeatable_metric(inputs, options).narrow(2, N - 1, 1), row, 1e-12, 1e-12));
}

TEST_P(EveryEstimator, IgnoresPaddingWhateverItHolds) {
  for (const MetricScope scope : {MetricScope::kSequence, MetricScope::kPrefix}) {
    const MetricInputs inputs = all_inputs();
    MetricOptions options = all_options(GetParam(), scope);
    const auto first_tokens = [&](const at::Tensor& t) { return t.narrow(2, 0, 7); };
    const MetricInputs shorter{first_tokens(inputs.v), first_tokens(*inputs.v_prev),
                               first_tokens(*inputs.q), first_tokens(*inputs.k),
                               first_tokens(*inputs.q_prev)};
    const at::Tensor expected = repeatable_metric(shorter, options);
    for (const at::Tensor& t : {inputs.v, *inputs.v_prev, *inputs.q, *inputs.k, *inputs.q_prev}) {
      t.narrow(2, 7, N - 7).fill_(std::nan(""));
    }
    options.lengths = torch::full({B}, 7, torch::kLong);
    const at::Tensor padded = repeatable_metric(inputs, options).narrow(2, 0, expected.size(2));
    EXPECT_TRUE(torch::allclose(padded, expected, 1e-12, 1e-12)) << ops::to_string(scope);
  }
}

TEST_P(EveryEstimator, NoTokensGiveOnesOrTheControl) {
  const MetricInputs inputs = all_inputs(/*num_tokens=*/0);
  EXPECT_TRUE(metric(inputs, all_options(GetParam(), MetricScope::kSequence))
                  .isfinite()
                  .all()
                  .item<bool>());
  EXPECT_EQ(metric(inputs, all_options(GetParam(), MetricScope::kPrefix)).sizes(),
            at::IntArrayRef({B, H, 0, D}));
}

TEST_P(EveryEstimator, ReadsWhatItsRowSays) {
  const MetricInputs inputs = all_inputs();
  const MetricOptions options = all_options(GetParam(), MetricScope::kPrefix);
  const at::Tensor expected = repeatable_metric(inputs, options);
  const auto check = [&](const char* name, bool is_read, MetricInputs left,
                         const MetricOptions& with) {
    if (is_read) {
      EXPECT_EQ(refusal<c10::ValueError>([&] { metric(left, with); }),
                c10::str("metric: ", name, " must be given for the estimator ", GetParam()->name,
                         ", got none"));
    } else {
      EXPECT_TRUE(repeatable_metric(left, with).equal(expected)) << name;
    }
  };
  const ops::EstimatorReads& reads = GetParam()->reads;
  const auto without = [&](std::optional<at::Tensor> MetricInputs::* member) {
    MetricInputs left = inputs;
    (left.*member).reset();
    return left;
  };
  check("v_prev", reads.v_prev, without(&MetricInputs::v_prev), options);
  check("q", reads.q, without(&MetricInputs::q), options);
  check("k", reads.k, without(&MetricInputs::k), options);
  check("q_prev", reads.q_prev, without(&MetricInputs::q_prev), options);
  MetricOptions no_temperature = options;
  no_temperature.temperature.reset();
  check("temperature", reads.temperature, inputs, no_temperature);
  // Of tokens, those that it says it reads do change it.
  MetricInputs other = all_inputs();
  EXPECT_EQ(repeatable_metric(other, options).equal(expected), !GetParam()->reads_tokens());
}

TEST_P(EveryEstimator, IsScaledAndDrawsAsItsRowSays) {
  const MetricInputs inputs = all_inputs();
  MetricOptions options = all_options(GetParam(), MetricScope::kSequence);
  options.scaling = MetricScaling::kMean;
  const at::Tensor by_mean = repeatable_metric(inputs, options);
  EXPECT_EQ(metric(inputs, options).equal(by_mean), !GetParam()->draws);
  options.scaling = MetricScaling::kNone;
  EXPECT_EQ(repeatable_metric(inputs, options).equal(by_mean), !GetParam()->is_scaled);
}

TEST_P(EveryEstimator, HasTheOptionsOfItsRowAndNoOthers) {
  using Field = EstimatorOption::Field;
  const MetricInputs inputs = all_inputs();
  MetricOptions start = all_options(GetParam(), MetricScope::kSequence);
  start.scaling = MetricScaling::kNone;  // where delta cancels
  const at::Tensor before = repeatable_metric(inputs, start);
  const std::pair<Field, std::function<void(MetricOptions&)>> changes[] = {
      {Field::kDelta, [](MetricOptions& o) { o.delta = 2; }},
      {Field::kAttenuation, [](MetricOptions& o) { o.attenuation = 0.1; }},
      {Field::kStep, [](MetricOptions& o) { o.step = 2; }},
      {Field::kQueryStride, [](MetricOptions& o) { o.query_stride = 1; }},
      {Field::kLow, [](MetricOptions& o) { o.low = 0.6; }},
      {Field::kSeed, [](MetricOptions& o) { o.seed = 5; }},
      {Field::kValue, [](MetricOptions& o) { o.value = 0.7; }}};
  for (const auto& [field, change] : changes) {
    MetricOptions options = start;
    change(options);
    EXPECT_EQ(repeatable_metric(inputs, options).equal(before), !GetParam()->has(field))
        << "field " << static_cast<int>(field);
  }
}

TEST_P(EveryEstimator, StreamsIfItsRowSaysSo) {
  if (!GetParam()->reads_tokens()) {
    EXPECT_TRUE(GetParam()->streams());
    return;
  }
  const MetricInputs whole = all_inputs();
  const MetricOptions options = all_options(GetParam(), MetricScope::kPrefix);
  ops::PrefixMetricState state;
  const auto next = [&](int64_t begin, int64_t end) {
    const auto tokens = [=](const at::Tensor& t) { return t.narrow(2, begin, end - begin); };
    return ops::next_metric_rows({tokens(whole.v), tokens(*whole.v_prev), tokens(*whole.q),
                                  tokens(*whole.k), tokens(*whole.q_prev)},
                                 options, state);
  };
  if (!GetParam()->streams()) {
    EXPECT_EQ(
        refusal<c10::ValueError>([&] { next(0, 1); }),
        c10::str("metric: estimator must have a running sum to stream, got ", GetParam()->name));
    return;
  }
  const at::Tensor rows = torch::cat({next(0, 1), next(1, 6), next(6, 6), next(6, N)}, 2);
  EXPECT_TRUE(torch::allclose(rows, metric(whole, options), 1e-12, 1e-12));
}

TEST(MetricEstimators, NamesAreUniqueAndGoBothWays) {
  std::set<std::string> names;
  for (const std::string& name : ops::metric_estimator_names()) {
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_EQ(ops::to_string(ops::metric_estimator(name)), name);
  }
  EXPECT_EQ(names.size(), ops::metric_estimators().size());
  EXPECT_TRUE(MetricEstimator() == "difference");
}

/// The row of docs/ops.md.
std::string documented(MetricEstimator estimator) {
  std::string reads, options;
  const auto add = [](std::string& list, bool is_there, const std::string& name) {
    if (is_there) list += (list.empty() ? "`" : ", `") + name + "`";
  };
  add(reads, estimator->reads.v_prev, "v_prev");
  add(reads, estimator->reads.q, "q");
  add(reads, estimator->reads.q_prev, "q_prev");
  add(reads, estimator->reads.k, "k");
  add(reads, estimator->reads.temperature, "temperature");
  for (const EstimatorOption* option : estimator->options) {
    if (option != nullptr) add(options, true, option->name);
  }
  // By append: gcc 12 warns wrongly where a literal and a sum are added (its bug 105651).
  const auto cell = [](const std::string& text) {
    std::string padded;
    if (!text.empty()) padded.append(" ").append(text);
    return padded.append(" |");
  };
  const auto yes = [](bool is_so) { return std::string(is_so ? "yes" : "no"); };
  std::string name = "`";
  name.append(estimator->name).append("`");
  std::string row = "|";
  for (const std::string& text : {name, std::string(estimator->formula), reads,
                                  yes(estimator->is_scaled), yes(estimator->streams()), options}) {
    row.append(cell(text));
  }
  return row;
}

TEST(MetricEstimators, DocsHaveTheTable) {
  std::ifstream file(ELLIPTICAL_SOURCE_DIR "/docs/ops.md");
  ASSERT_TRUE(file.is_open());
  std::string line;
  while (std::getline(file, line) && !line.starts_with("| estimator |")) continue;
  std::getline(file, line);  // the rule below the heads
  for (const MetricEstimator estimator : ops::metric_estimators()) {
    std::getline(file, line);
    EXPECT_EQ(line, documented(estimator));
  }
  std::getline(file, line);
  EXPECT_EQ(line, "") << "a row that is no estimator";
}

}  // namespace
}  // namespace elliptical::metric_estimators_test
