// SPDX-License-Identifier: MIT
//
// Same inputs, same bits: whatever the number of threads, at every repetition.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "elliptical/ops/attention.h"
#include "tests/support/attention_data.h"
#include "tests/support/one_thread.h"

namespace elliptical {
namespace {

TEST(AttentionThreads, K6DoNotChangeABit) {
  const support::ThreadCount restore;
  // A metric shared by all: its gradient is a sum over everything.
  const support::AttentionData data = support::make_data({.sizes = {3, 4, 2, 131, 131, 24, 20},
                                                          .metric = "111D",
                                                          .key_lengths = {131, 70, 1},
                                                          .is_causal = true,
                                                          .dropout_p = 0.1});
  at::set_num_threads(1);
  const support::AttentionRun expected = support::run(ops::attention_with_lse, data);
  for (const int threads : {1, 2, 3, 8}) {
    at::set_num_threads(threads);
    for (int repeat = 0; repeat < 100; ++repeat) {
      const support::AttentionRun run = support::run(ops::attention_with_lse, data);
      ASSERT_TRUE(run.out.equal(expected.out)) << threads << " threads, repeat " << repeat;
      ASSERT_TRUE(run.lse.equal(expected.lse)) << threads << " threads, repeat " << repeat;
      for (size_t i = 0; i < run.gradients.size(); ++i) {
        ASSERT_TRUE(run.gradients[i].equal(expected.gradients[i]))
            << "gradient " << i << ", " << threads << " threads, repeat " << repeat;
      }
    }
  }
}

}  // namespace
}  // namespace elliptical
