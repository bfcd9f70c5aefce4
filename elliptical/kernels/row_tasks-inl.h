// SPDX-License-Identifier: MIT
//
// How layers on rows are cut into tasks. Tasks are blocks of rows; sums over rows (gradients of
// vectors) are made per task first, then over tasks in their order: short sums keep digits, and
// nobody waits for a lock.
// Included once per SIMD target (Highway's -inl.h convention).

#if defined(ELLIPTICAL_KERNELS_ROW_TASKS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ELLIPTICAL_KERNELS_ROW_TASKS_INL_H_
#undef ELLIPTICAL_KERNELS_ROW_TASKS_INL_H_
#else
#define ELLIPTICAL_KERNELS_ROW_TASKS_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "elliptical/kernels/parallel.h"
#include "elliptical/kernels/rows.h"
#include "elliptical/kernels/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace elliptical::kernels {
namespace HWY_NAMESPACE {

/// Elements of a task: enough to pay for a task, few enough that the sums of many tasks stay small
/// beside the matrix.
constexpr int64_t kTaskElements = 1 << 15;

/// Rows of a task, and how many tasks there are.
struct RowTasks {
  int64_t rows, rows_per_task, count;

  explicit RowTasks(Rows size)
      : rows(size.rows),
        rows_per_task(std::max<int64_t>(16, kTaskElements / std::max<int64_t>(1, size.C))),
        count((rows + rows_per_task - 1) / rows_per_task) {}
  int64_t begin(int64_t task) const { return task * rows_per_task; }
  int64_t end(int64_t task) const { return std::min(rows, begin(task) + rows_per_task); }
};

/// sums[c] = sum over tasks of partial[task, c], for c in [0, width), in the order of tasks.
inline void SumTasks(const float* partial,
                     int64_t tasks,
                     int64_t ld,
                     int64_t width,
                     float* sums,
                     const ParallelFor& parallel_for) {
  constexpr int64_t kColumns = 512;
  parallel_for((width + kColumns - 1) / kColumns, [&](int64_t first, int64_t last) {
    const int64_t begin = first * kColumns, end = std::min(width, last * kColumns);
    std::fill(sums + begin, sums + end, 0.0f);
    for (int64_t task = 0; task < tasks; ++task) {
      const float* row = partial + task * ld;
      for (int64_t c = begin; c < end; ++c) sums[c] += row[c];
    }
  });
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace elliptical::kernels
HWY_AFTER_NAMESPACE();

#endif
