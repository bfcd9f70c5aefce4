// SPDX-License-Identifier: MIT
//
// How a kernel asks its caller for threads. Kernels own no threads: `ops` hands in
// at::parallel_for, a plain C++ program whatever it has. A kernel cuts its work into tasks by the
// problem's sizes alone, so the result does not depend on who runs which task.
#pragma once

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

}  // namespace elliptical::kernels
