// SPDX-License-Identifier: MIT
//
// Sanitizers slow the kernels down some ten times: tests that repeat a lot repeat less under them.
#pragma once

namespace elliptical::kernels::test {

#ifdef __SANITIZE_ADDRESS__
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace elliptical::kernels::test
