// SPDX-License-Identifier: MIT
#include "bench/cases.h"

#include <gtest/gtest.h>

#include <set>

namespace elliptical::bench {
namespace {

TEST(Cases, HaveUniqueNamesAndTargets) {
  std::set<std::string> names;
  for (const TimedCase& c : all_cases()) {
    EXPECT_TRUE(names.insert(c.name()).second) << c.name();
    EXPECT_GT(c.must_forward, 0) << c.name();
    EXPECT_GT(c.must_backward, 0) << c.name();
  }
}

TEST(Cases, FlopsCountTwoProductsForwardAndSevenWithBackward) {
  const TimedCase dense{self_attention(2, 3, 10, 4)};
  EXPECT_DOUBLE_EQ(dense.flops(Pass::kForward), 2 * 2.0 * 2 * 3 * 10 * 10 * 4);
  EXPECT_DOUBLE_EQ(dense.flops(Pass::kForwardBackward), 7 * 2.0 * 2 * 3 * 10 * 10 * 4);
}

TEST(Cases, CausalFlopsCountTheVisibleScores) {
  TimedCase causal{self_attention(1, 1, 10, 1)};
  causal.shape.is_causal = true;
  EXPECT_DOUBLE_EQ(causal.flops(Pass::kForward), 2 * 2.0 * (10 * 11 / 2));
}

}  // namespace
}  // namespace elliptical::bench
