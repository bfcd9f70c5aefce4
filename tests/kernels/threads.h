// SPDX-License-Identifier: MIT
//
// A ParallelFor for tests: real threads, and as unkind a schedule as the contract allows.
#pragma once

#include <cstdint>

#include "elliptical/kernels/parallel.h"

namespace elliptical::kernels::test {

/// Cuts the tasks into ranges of random length and hands them out in random order to `num_threads`
/// threads. Each call draws another schedule from `seed`.
ParallelFor shuffled_threads(int num_threads, uint64_t seed);

/// Equal shares, one per thread, as a thread pool would do it.
ParallelFor even_threads(int num_threads);

}  // namespace elliptical::kernels::test
