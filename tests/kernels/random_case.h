// SPDX-License-Identifier: MIT
//
// Attention cases drawn from a seed alone, so that a failing one is rerun by its number. Numbers and
// memory come in problem.h.
#pragma once

#include <array>
#include <cstdint>

#include "bench/attention_case.h"
#include "tests/kernels/random.h"
#include "tests/kernels/strided_array.h"

namespace elliptical::kernels::test {

using bench::AttentionCase;

enum class CaseSize {
  small,  ///< 0, 1, vector lanes +-1, primes; every option
  block,  ///< query and key counts around the kernel's block sizes
  few,    ///< a few queries alone or behind whole vectors, which mostly see all keys
};

AttentionCase random_case(uint64_t seed, CaseSize size);

/// Any strides at all. `expanded` axes are chosen by the caller.
Layout random_input_layout(Random& random, const std::array<bool, 4>& expanded = {});
/// The same without stride 0 and with elements of a row side by side, as outputs must be.
Layout random_output_layout(Random& random);

}  // namespace elliptical::kernels::test
