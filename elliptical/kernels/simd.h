// SPDX-License-Identifier: MIT
//
// Which instruction set the kernels run on. Each SIMD source is compiled once per target; at run
// time the best one the CPU has is taken, unless the environment variable ELLIPTICAL_SIMD or
// `simd_use` names another.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace elliptical::kernels {

/// Targets compiled in that this CPU can run, best first, as `ELLIPTICAL_SIMD` spells them: "avx2",
/// ...
std::vector<std::string> simd_targets();

/// Every target compiled in, whether this CPU can run it or not.
std::vector<std::string> simd_compiled_targets();

/// The one in use. Throws std::invalid_argument when ELLIPTICAL_SIMD names a target that can not
/// run here.
std::string simd_target();

/// Forces a target for the whole process; an empty name goes back to the best one. Not to be called
/// while a kernel runs. Throws std::invalid_argument with the possible names.
void simd_use(std::string_view name);

}  // namespace elliptical::kernels
