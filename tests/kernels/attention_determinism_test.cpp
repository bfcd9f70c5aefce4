// SPDX-License-Identifier: MIT
//
// Same inputs, same bits: whatever the number of threads, the way work is handed out, and whether
// "no metric" is said or written as ones.
#include <gtest/gtest.h>

#include <cmath>
#include <ostream>
#include <string>

#include "tests/kernels/problem.h"
#include "tests/kernels/sanitized.h"
#include "tests/kernels/targets.h"
#include "tests/kernels/threads.h"

namespace elliptical::kernels::test::attention_determinism_test {
namespace {

constexpr int kThreadCounts[] = {1, 2, 3, 8};

struct Shape {
  const char* name;
  AttentionSizes sizes;
  bool is_causal;
  MetricKind metric;
  double dropout_p;
};

std::ostream& operator<<(std::ostream& stream, const Shape& shape) { return stream << shape.name; }

// Chosen so that work is cut along batch, heads, groups, queries and keys in turn.
constexpr Shape kShapes[] = {
    {"many_heads", {2, 6, 6, 33, 33, 16, 16}, false, MetricKind::row, 0.0},
    {"grouped", {1, 6, 2, 40, 40, 8, 8}, true, MetricKind::row, 0.1},
    {"one_long_head", {1, 1, 1, 300, 300, 16, 16}, false, MetricKind::row, 0.0},
    {"one_long_causal_head", {1, 1, 1, 257, 257, 17, 9}, true, MetricKind::per_query, 0.0},
    {"few_queries", {1, 2, 1, 3, 500, 32, 32}, true, MetricKind::none, 0.0},
    {"few_keys", {1, 2, 2, 500, 3, 32, 32}, false, MetricKind::row, 0.5},
};

AttentionCase make_case(const Shape& shape) {
  AttentionCase options;
  options.seed = 99;
  options.sizes = shape.sizes;
  options.is_causal = shape.is_causal;
  options.metric = shape.metric;
  options.dropout_p = shape.dropout_p;
  options.scale = 1.0 / std::sqrt(static_cast<double>(shape.sizes.D));
  options.plain_memory = true;
  return options;
}

class AttentionDeterminism : public ::testing::TestWithParam<Shape> {};

TEST_P(AttentionDeterminism, K6_SameBitsForAnyThreadsAndSchedule) {
  constexpr int kRepeats = kSanitized ? 5 : 100;
  const Problem<float> problem(make_case(GetParam()));
  for (const std::string& target : targets_under_test()) {
    const ForcedTarget forced(target);
    const Result<float> expected = run_kernel(problem);
    // The best target gets all repeats, the others enough to see a difference in the way of
    // cutting.
    const int repeats = target == targets_under_test().front() ? kRepeats : 5;
    for (int repeat = 0; repeat < repeats; ++repeat) {
      for (const int num_threads : kThreadCounts) {
        expect_same_bits(run_kernel(problem, shuffled_threads(num_threads, repeat)), expected,
                         target + ", " + std::to_string(num_threads) + " threads, repeat " +
                             std::to_string(repeat));
        if (HasFatalFailure()) return;
      }
    }
    for (const int num_threads : kThreadCounts)
      expect_same_bits(run_kernel(problem, even_threads(num_threads)), expected, target);
  }
}

TEST_P(AttentionDeterminism, MetricOfOnesIsNoMetric) {
  AttentionCase options = make_case(GetParam());
  options.metric = MetricKind::none;
  const Problem<float> without(options);
  for (const MetricKind kind : {MetricKind::row, MetricKind::per_query}) {
    options.metric = kind;
    Problem<float> with(options);
    with.metric.for_each(
        [&](int64_t b, int64_t h, int64_t n, int64_t d) { with.metric.at(b, h, n, d) = 1.0f; });
    for (const std::string& target : targets_under_test()) {
      const ForcedTarget forced(target);
      Result<float> ones = run_kernel(with);
      ones.d_metric = {};  // only the other tensors exist without a metric
      expect_same_bits(ones, run_kernel(without), target);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shape,
                         AttentionDeterminism,
                         ::testing::ValuesIn(kShapes),
                         [](const auto& shape) { return std::string(shape.param.name); });

}  // namespace
}  // namespace elliptical::kernels::test::attention_determinism_test
