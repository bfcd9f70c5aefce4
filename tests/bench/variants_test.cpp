// SPDX-License-Identifier: MIT
#include "bench/variants.h"

#include <gtest/gtest.h>

namespace elliptical::bench {
namespace {

const TrainingCase kTiny{.vocabulary_size = 50,
                         .batch = 1,
                         .window = 8,
                         .num_layers = 2,
                         .dim = 8,
                         .num_heads = 2,
                         .feedforward_dim = 8};

TEST(Variants, HaveTimesAndMemoryInTheOrderGiven) {
  const auto results = measure_variants(kTiny, {"softmax", "elliptical"}, {16, 64}, 3);
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0].attention, "softmax");
  EXPECT_EQ(results[1].attention, "elliptical");
  for (const VariantResult& result : results) {
    EXPECT_EQ(result.refusal, "");
    EXPECT_EQ(result.step.calls, 3);
    EXPECT_GT(result.num_parameters, 0);
    ASSERT_EQ(result.memory.size(), 2u);
    EXPECT_EQ(result.memory[1].num_tokens, 64);
    // At least q, k, v and out of every token.
    EXPECT_GE(result.memory[1].bytes, 4 * 64 * kTiny.dim * 4);
    EXPECT_GT(result.memory[1].bytes, 3 * result.memory[0].bytes);
  }
  // Memory repeats exactly.
  const auto again = measure_variants(kTiny, {"elliptical"}, {16}, 1);
  EXPECT_EQ(again[0].memory[0].bytes, results[1].memory[0].bytes);
}

TEST(Variants, ThatDoNotFitAreRefusedAndTheOthersMeasured) {
  TrainingCase odd = kTiny;
  odd.num_heads = 3;  // does not divide the width: no variant goes into this model
  const auto refused = measure_variants(odd, {"softmax", "mgk"}, {16}, 1);
  for (const VariantResult& result : refused) {
    EXPECT_NE(result.refusal.find("heads"), std::string::npos) << result.refusal;
    EXPECT_TRUE(result.memory.empty());
    EXPECT_EQ(result.step.calls, 0);
  }
}

}  // namespace
}  // namespace elliptical::bench
