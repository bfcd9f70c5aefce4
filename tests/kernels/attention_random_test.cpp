// SPDX-License-Identifier: MIT
//
// The fused kernel on thousands of random problems, forward and backward, on every SIMD target,
// with its error against double held to that of a plain float computation (composite.h has the
// bound).
//
// To rerun one case alone:  ELLIPTICAL_CASE=123 kernels_test --gtest_filter='*Random*'
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "tests/kernels/composite.h"
#include "tests/kernels/problem.h"
#include "tests/kernels/sanitized.h"
#include "tests/kernels/targets.h"
#include "tests/support/attention_cases.h"

namespace elliptical::kernels::test {
namespace {

constexpr int kSmallCases = kSanitized ? 480 : 3200;
constexpr int kBlockCases = kSanitized ? 16 : 160;
constexpr int kFewCases = kSanitized ? 32 : 320;
constexpr int kShards = 16;

/// The exact result by two independent computations, and what is needed to judge the kernel.
struct Judge {
  explicit Judge(const AttentionCase& options)
      : problem(options),
        exact_problem(options),
        composite(run_composite(problem)),
        exact(run_reference(exact_problem)),
        scales(error_scales(exact_problem)) {}

  void expect_reference_agrees() const {
    const auto first = tensors(exact);
    const auto second = tensors(run_composite(exact_problem));
    for (size_t t = 0; t < first.size(); ++t) {
      const auto scale = scales.find(first[t].name);
      // Two double computations: 256 units leave room for the reference's plain running sums.
      EXPECT_LE(max_error(second[t].values, first[t].values),
                256 * 0x1p-53 * (scale == scales.end() ? 0.0 : scale->second))
          << first[t].name << ", " << exact_problem.options.describe();
    }
  }

  Problem<float> problem;
  Problem<double> exact_problem;
  Result<float> composite;
  Result<double> exact;
  std::map<std::string, double> scales;
};

void check(const AttentionCase& options) {
  const Judge judge(options);
  judge.expect_reference_agrees();
  for (const std::string& target : targets_under_test()) {
    const ForcedTarget forced(target);
    const std::string what = target + ", " + options.describe();
    const Result<float> result = run_kernel(judge.problem);
    expect_accurate(result, judge.composite, judge.exact, judge.scales, what);
    for (const auto* output : {&result.o, &result.dq, &result.dk, &result.dv, &result.d_metric})
      EXPECT_TRUE(output->gaps_untouched()) << what;
  }
}

class AttentionRandom : public ::testing::TestWithParam<int> {
 protected:
  /// Cases of this shard; all sizes of a kind are spread over all shards.
  void check_shard(CaseSize size, int num_cases) {
    const char* only = std::getenv("ELLIPTICAL_CASE");
    for (int seed = GetParam(); seed < num_cases; seed += kShards) {
      if (only && std::to_string(seed) != only) continue;
      check(random_case(static_cast<uint64_t>(seed), size));
      if (HasFailure()) return;  // the first failing case says enough
    }
  }
};

TEST_P(AttentionRandom, K2_K3_K8_SmallCases) { check_shard(CaseSize::small, kSmallCases); }
TEST_P(AttentionRandom, K8_BlockSizedCases) { check_shard(CaseSize::block, kBlockCases); }
TEST_P(AttentionRandom, K8_FewQueries) { check_shard(CaseSize::few, kFewCases); }

TEST(AttentionCases, K2_K3_K8_CasesOfTheOps) {
  for (const AttentionCase& options : support::attention_cases()) check(options);
}

INSTANTIATE_TEST_SUITE_P(Shard, AttentionRandom, ::testing::Range(0, kShards));

}  // namespace
}  // namespace elliptical::kernels::test
