// SPDX-License-Identifier: MIT
//
// For SIMD sources only; include it before any Highway header. Chooses the targets we compile for
// and gives the dispatch index of the one in use. The index is our own, not Highway's process-wide
// one, so that forcing a target here changes nothing for other users of Highway in the same
// process.
#pragma once

// Left out: targets without a compile-time vector length (register tiles are arrays of vectors),
// SSSE3 (every CPU with it that is still in use has SSE4) and AVX3_DL (adds nothing these kernels
// use to AVX3).
#define HWY_DISABLED_TARGETS \
  (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV | HWY_SSSE3 | HWY_AVX3_DL)

#include "hwy/targets.h"

namespace elliptical::kernels {

/// `HWY_DISPATCH_TABLE(Function)[simd_chosen().GetIndex()](...)` calls the chosen variant.
const hwy::ChosenTarget& simd_chosen();

}  // namespace elliptical::kernels
