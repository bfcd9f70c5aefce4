// SPDX-License-Identifier: MIT
#pragma once

#include <ATen/Parallel.h>

#include "elliptical/kernels/parallel.h"

namespace elliptical::ops {

/// torch's thread pool as the kernels' parallel-for. Kernels cut tasks large enough: grain 1.
inline void torch_parallel_for(int64_t num_tasks, const kernels::TaskRange& body) {
  at::parallel_for(0, num_tasks, /*grain_size=*/1, body);
}

}  // namespace elliptical::ops
