// SPDX-License-Identifier: MIT
//
// How a kernel asks its caller for threads. Kernels own no threads: `ops` hands in
// at::parallel_for, a plain C++ program whatever it has. A kernel cuts its work into tasks by the
// problem's sizes alone, so the result does not depend on who runs which task.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

namespace elliptical::kernels {

/// Runs tasks [begin, end); called for disjoint ranges, possibly at the same time.
using TaskRange = std::function<void(int64_t begin, int64_t end)>;

/// Calls `body` so that [0, num_tasks) is covered exactly once, and returns when all is done.
using ParallelFor = std::function<void(int64_t num_tasks, const TaskRange& body)>;

/// The caller's own thread does everything.
inline void serial_for(int64_t num_tasks, const TaskRange& body) {
  if (num_tasks > 0) body(0, num_tasks);
}

/// Hands out tasks 0, 1, 2, ... to whichever thread is free: tasks differ in cost under a causal
/// mask or with padding.
class TaskQueue {
 public:
  explicit TaskQueue(int64_t num_tasks) : num_tasks_(num_tasks) {}
  bool empty() const { return next_.load(std::memory_order_relaxed) >= num_tasks_; }
  /// The next task, or -1 when there is none left.
  int64_t take() {
    const int64_t task = next_.fetch_add(1, std::memory_order_relaxed);
    return task < num_tasks_ ? task : -1;
  }

 private:
  const int64_t num_tasks_;
  std::atomic<int64_t> next_{0};
};

/// Calls `worker(queue)` once per thread that `parallel_for` offers; each takes tasks until none is
/// left.
template <class Worker>
void share_tasks(int64_t num_tasks, const ParallelFor& parallel_for, const Worker& worker) {
  TaskQueue queue(num_tasks);
  parallel_for(num_tasks, [&](int64_t, int64_t) {
    if (!queue.empty()) worker(queue);
  });
}

}  // namespace elliptical::kernels
