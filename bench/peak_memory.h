// SPDX-License-Identifier: MIT
//
// How many bytes of tensors a piece of work holds at most, beside those that were there before. As
// torch's allocator reports it, so it repeats exactly. Not counted: what is allocated without
// torch, such as the scratch memory of kernels, of fixed size per thread.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace elliptical::bench {

int64_t peak_memory(const std::function<void()>& work);

/// What a pass over so many tokens holds at its peak.
struct MemoryPoint {
  int64_t num_tokens = 0;
  int64_t bytes = 0;
};

/// p of the power law bytes ~ num_tokens^p that fits at least two points best: least squares in
/// logarithms. 1 is linear, 2 quadratic.
double growth_exponent(const std::vector<MemoryPoint>& points);

}  // namespace elliptical::bench
