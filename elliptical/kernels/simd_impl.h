// SPDX-License-Identifier: MIT
//
// For SIMD sources only: the dispatch index of the target in use. Our own, not Highway's
// process-wide one, so that forcing a target here changes nothing for other users of Highway in the
// same process.
#pragma once

#include "hwy/targets.h"

namespace elliptical::kernels {

/// `HWY_DISPATCH_TABLE(Function)[simd_chosen().GetIndex()](...)` calls the chosen variant.
const hwy::ChosenTarget& simd_chosen();

}  // namespace elliptical::kernels
