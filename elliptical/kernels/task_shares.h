// SPDX-License-Identifier: MIT
//
// Tasks for threads that do not run equally fast: beside other programs one of them may get half a
// processor, or start late. Each has an equal share, so that in quiet times it works on the same
// rows from call to call, which its cache still holds; whoever is done takes pieces of what the
// others have not begun.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include "elliptical/kernels/parallel.h"

namespace elliptical::kernels {

class TaskShares {
 public:
  /// At most `num_workers` shares, and not more than tasks.
  TaskShares(int64_t num_tasks, int64_t num_workers)
      : num_tasks_(num_tasks),
        shares_(std::clamp<int64_t>(num_workers, 1, std::max<int64_t>(1, num_tasks))) {
    for (int64_t worker = 0; worker < num_shares(); ++worker) {
      shares_[worker].next.store(begin(worker), std::memory_order_relaxed);
    }
  }

  int64_t num_shares() const { return static_cast<int64_t>(shares_.size()); }

  /// What worker number `worker` of num_shares() is to do: its own share, then the others'. When
  /// every worker has returned, each task has been run once.
  void work(int64_t worker, const TaskRange& body) {
    for (int64_t i = 0; i < num_shares(); ++i) finish((worker + i) % num_shares(), body);
  }

 private:
  /// Large enough for what a piece sets up and for products over blocks of rows.
  static constexpr int64_t kPiecesPerShare = 4;

  /// On a cache line of its own: its owner counts without disturbing the others.
  struct alignas(64) Share {
    std::atomic<int64_t> next;  ///< the first task that nobody has taken
  };

  int64_t begin(int64_t worker) const { return num_tasks_ * worker / num_shares(); }

  void finish(int64_t worker, const TaskRange& body) {
    const int64_t end = begin(worker + 1), size = end - begin(worker);
    const int64_t piece = (size + kPiecesPerShare - 1) / kPiecesPerShare;
    std::atomic<int64_t>& next = shares_[worker].next;
    while (next.load(std::memory_order_relaxed) < end) {
      const int64_t first = next.fetch_add(piece, std::memory_order_relaxed);
      if (first < end) body(first, std::min(end, first + piece));
    }
  }

  const int64_t num_tasks_;
  std::vector<Share> shares_;
};

}  // namespace elliptical::kernels
