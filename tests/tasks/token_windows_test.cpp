// SPDX-License-Identifier: MIT
#include "elliptical/tasks/token_windows.h"

#include <gtest/gtest.h>

namespace elliptical::tasks {
namespace {

TEST(TokenWindows, ColumnsAreReadInOrder) {
  // 23 tokens in 2 columns of 11: 10 inputs each, windows of 4, 4 and 2; token 22 is dropped.
  EXPECT_EQ(num_column_batches(23, 2, 4), 3);
  EXPECT_EQ(column_batch(23, 2, 4, 0), (WindowBatch{{0, 4, 4}, {11, 4, 4}}));
  EXPECT_EQ(column_batch(23, 2, 4, 1), (WindowBatch{{4, 4, 4}, {15, 4, 4}}));
  EXPECT_EQ(column_batch(23, 2, 4, 2), (WindowBatch{{8, 2, 2}, {19, 2, 2}}));
}

TEST(TokenWindows, ColumnsOfOneTokenHaveNothingToPredict) {
  EXPECT_EQ(num_column_batches(5, 5, 4), 0);
  EXPECT_EQ(num_column_batches(10, 5, 4), 1);
}

TEST(TokenWindows, SlidingScoresEveryTargetOnce) {
  for (const int64_t stride : {1, 3, 4}) {
    for (const int64_t num_tokens : {5, 6, 20, 23}) {
      std::vector<int> scored(static_cast<size_t>(num_tokens), 0);
      for (const WindowBatch& batch : sliding_batches(num_tokens, 4, stride, 3)) {
        EXPECT_LE(batch.size(), 3u);
        for (const Window& window : batch) {
          EXPECT_EQ(window.length, 4) << "full context";
          const int64_t end = window.begin + window.length;
          for (int64_t input = end - window.num_scored; input < end; ++input) {
            ++scored[static_cast<size_t>(input + 1)];
          }
        }
      }
      EXPECT_EQ(scored[0], 0) << "the first token is never a target";
      for (size_t i = 1; i < scored.size(); ++i) EXPECT_EQ(scored[i], 1) << "target " << i;
    }
  }
}

TEST(TokenWindows, SlidingStartsWithAFullWindow) {
  const auto batches = sliding_batches(7, 4, 1, 100);
  ASSERT_EQ(batches.size(), 2u) << "what scores more is a batch of its own";
  EXPECT_EQ(batches[0], (WindowBatch{{0, 4, 4}}));
  EXPECT_EQ(batches[1], (WindowBatch{{1, 4, 1}, {2, 4, 1}}));
}

TEST(TokenWindows, CostOfSlidingIsThatOfItsWindows) {
  for (const int64_t stride : {1, 3, 4}) {
    for (const int64_t num_tokens : {2, 4, 5, 6, 20, 23}) {
      SlidingCost counted;
      for (const WindowBatch& batch : sliding_batches(num_tokens, 4, stride, 3)) {
        for (const Window& window : batch) {
          ++counted.num_windows;
          counted.num_computed += window.length;
          counted.num_scored += window.num_scored;
        }
      }
      const SlidingCost cost = sliding_cost(num_tokens, 4, stride);
      EXPECT_EQ(cost.num_windows, counted.num_windows) << num_tokens << " " << stride;
      EXPECT_EQ(cost.num_computed, counted.num_computed) << num_tokens << " " << stride;
      EXPECT_EQ(cost.num_scored, counted.num_scored) << num_tokens << " " << stride;
    }
  }
}

}  // namespace
}  // namespace elliptical::tasks
