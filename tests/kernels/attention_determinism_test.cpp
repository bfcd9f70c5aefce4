// SPDX-License-Identifier: MIT
//
// Same inputs, same bits: whatever the number of threads, the way work is handed out, and whether
// "no metric" is said or written as ones.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/kernels/problem.h"
#include "tests/kernels/sanitized.h"
#include "tests/kernels/targets.h"
#include "tests/kernels/threads.h"

namespace elliptical::kernels::test::attention_determinism_test {
namespace {

constexpr int kThreadCounts[] = {1, 2, 3, 8};

// Chosen so that work is cut along batch, heads, groups, queries and keys in turn.
std::vector<AttentionCase> cases() {
  std::vector<AttentionCase> all = {
      {.name = "many_heads", .sizes = {2, 6, 6, 33, 33, 16, 16}, .metric = "BH1D"},
      {.name = "grouped",
       .sizes = {1, 6, 2, 40, 40, 8, 8},
       .metric = "BH1D",
       .is_causal = true,
       .dropout_p = 0.1},
      {.name = "one_long_head", .sizes = {1, 1, 1, 300, 300, 16, 16}, .metric = "BH1D"},
      {.name = "one_long_causal_head",
       .sizes = {1, 1, 1, 257, 257, 17, 9},
       .metric = "BHND",
       .is_causal = true},
      {.name = "few_queries", .sizes = {1, 2, 1, 3, 500, 32, 32}, .is_causal = true},
      {.name = "few_keys", .sizes = {1, 2, 2, 500, 3, 32, 32}, .metric = "BH1D", .dropout_p = 0.5},
  };
  for (AttentionCase& each : all) each.plain_memory = true;
  return all;
}

class AttentionDeterminism : public ::testing::TestWithParam<AttentionCase> {};

TEST_P(AttentionDeterminism, K6_SameBitsForAnyThreadsAndSchedule) {
  constexpr int kRepeats = kSanitized ? 5 : 100;
  const Problem<float> problem(GetParam());
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
  AttentionCase options = GetParam();
  options.metric = "";
  const Problem<float> without(options);
  for (const char* axes : {"BH1D", "BHND"}) {
    options.metric = axes;
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
                         ::testing::ValuesIn(cases()),
                         [](const auto& shape) { return shape.param.name; });

}  // namespace
}  // namespace elliptical::kernels::test::attention_determinism_test
