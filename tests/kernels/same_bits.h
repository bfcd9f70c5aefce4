// SPDX-License-Identifier: MIT
//
// Kernels give the same bits whoever does the work.
#pragma once

#include <vector>

#include "tests/kernels/floats.h"
#include "tests/kernels/threads.h"

namespace elliptical::kernels::test {

/// Fails the running test unless the arrays that run(parallel_for) returns have the bits of one
/// thread's on every schedule.
template <class Run>
void expect_same_for_any_schedule(const Run& run) {
  const std::vector<Floats> expected = run(serial_for);
  on_every_schedule([&](const ParallelFor& threads) {
    const std::vector<Floats> got = run(threads);
    for (size_t i = 0; i < got.size(); ++i) expect_same_bits(got[i], expected[i], "schedule");
  });
}

}  // namespace elliptical::kernels::test
