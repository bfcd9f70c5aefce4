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

/// Calls check(parallel_for) for 1, 2, 3 and 8 threads, in equal shares and in random order.
template <class Check>
void on_every_schedule(const Check& check) {
  for (const int num_threads : {1, 2, 3, 8}) {
    check(even_threads(num_threads));
    check(shuffled_threads(num_threads, static_cast<uint64_t>(num_threads)));
  }
}

}  // namespace elliptical::kernels::test
