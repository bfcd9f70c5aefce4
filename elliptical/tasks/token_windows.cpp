// SPDX-License-Identifier: MIT
#include "elliptical/tasks/token_windows.h"

#include <algorithm>

namespace elliptical::tasks {

int64_t num_column_batches(int64_t num_tokens, int64_t columns, int64_t window) {
  const int64_t num_inputs =
      num_tokens / columns - 1;  // of a column: its last token is only a target
  return num_inputs <= 0 ? 0 : (num_inputs + window - 1) / window;
}

WindowBatch column_batch(int64_t num_tokens, int64_t columns, int64_t window, int64_t index) {
  const int64_t column_length = num_tokens / columns;
  const int64_t offset = index * window;
  const int64_t length = std::min(window, column_length - 1 - offset);
  WindowBatch batch;
  for (int64_t column = 0; column < columns; ++column) {
    batch.push_back({column * column_length + offset, length, length});
  }
  return batch;
}

std::vector<WindowBatch> sliding_batches(int64_t num_tokens,
                                         int64_t window,
                                         int64_t stride,
                                         int64_t batch_size) {
  const int64_t num_inputs = num_tokens - 1;
  std::vector<WindowBatch> batches;
  int64_t scored = 0;  // inputs whose targets are in some window
  while (scored < num_inputs) {
    const int64_t end =
        scored == 0 ? std::min(window, num_inputs) : std::min(scored + stride, num_inputs);
    const Window next{std::max<int64_t>(0, end - window), std::min(window, end), end - scored};
    // The first window scores more than the others, the last one may score less.
    if (batches.empty() || static_cast<int64_t>(batches.back().size()) == batch_size ||
        batches.back().front().num_scored != next.num_scored) {
      batches.emplace_back();
    }
    batches.back().push_back(next);
    scored = end;
  }
  return batches;
}

SlidingCost sliding_cost(int64_t num_tokens, int64_t window, int64_t stride) {
  const int64_t num_scored = std::max<int64_t>(num_tokens - 1, 0);
  const int64_t num_later = std::max<int64_t>(num_scored - window, 0);
  const int64_t num_windows = num_scored == 0 ? 0 : 1 + (num_later + stride - 1) / stride;
  return {num_windows, num_windows * std::min(window, num_scored), num_scored};
}

}  // namespace elliptical::tasks
