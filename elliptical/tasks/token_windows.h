// SPDX-License-Identifier: MIT
//
// How a stream of tokens is cut into what a language model reads. A window of length n at `begin`
// has inputs tokens[begin .. begin + n) and, for each input, the token after it as target; only the
// last `num_scored` targets count. All cuts are functions of sizes, never of what was read before.
#pragma once

#include <cstdint>
#include <vector>

namespace elliptical::tasks {

struct Window {
  int64_t begin = 0, length = 0, num_scored = 0;
  bool operator==(const Window&) const = default;
};

/// The windows of one batch; all have the same length and score equally many targets.
using WindowBatch = std::vector<Window>;

/// Number of batches in one pass over the columns.
int64_t num_column_batches(int64_t num_tokens, int64_t columns, int64_t window);

/// Batch number `index` of the stream cut into equal columns (the remainder is dropped), read in
/// consecutive windows from top to bottom; the last one may be shorter. Every target counts.
WindowBatch column_batch(int64_t num_tokens, int64_t columns, int64_t window, int64_t index);

/// A window that moves by `stride` tokens and scores only those: every target of the stream counts
/// once, with all the context that fits. The first window scores everything.
std::vector<WindowBatch> sliding_batches(int64_t num_tokens,
                                         int64_t window,
                                         int64_t stride,
                                         int64_t batch_size);

/// What such a pass costs: it reads `num_windows * window` tokens to score `num_scored`.
struct SlidingCost {
  int64_t num_windows = 0, num_computed = 0, num_scored = 0;
};
SlidingCost sliding_cost(int64_t num_tokens, int64_t window, int64_t stride);

}  // namespace elliptical::tasks
