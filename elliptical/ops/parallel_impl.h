// SPDX-License-Identifier: MIT
#pragma once

#include <ATen/Parallel.h>

#include "elliptical/kernels/task_shares.h"

namespace elliptical::ops {

/// torch's thread pool as the kernels' parallel-for. Kernels cut tasks large enough: grain 1.
inline void torch_parallel_for(int64_t num_tasks, const kernels::TaskRange& body) {
  const int num_threads = at::in_parallel_region() ? 1 : at::get_num_threads();
  if (num_threads == 1 || num_tasks <= 1) {
    if (num_tasks > 0) body(0, num_tasks);
    return;
  }
  kernels::TaskShares shares(num_tasks, num_threads);
  at::parallel_for(0, shares.num_shares(), /*grain_size=*/1, [&](int64_t begin, int64_t end) {
    for (int64_t worker = begin; worker < end; ++worker) shares.work(worker, body);
  });
}

}  // namespace elliptical::ops
