// SPDX-License-Identifier: MIT
//
// How much heap memory this program holds and has held at most. Linking allocation_count.cpp
// replaces malloc and its relatives for the whole program (operator new ends there too). glibc
// only; not with AddressSanitizer, which replaces them itself.
#pragma once

#include <cstddef>

namespace elliptical::kernels::test {

/// Bytes handed out and not yet returned.
size_t allocated_bytes();

/// Largest value of allocated_bytes() since the last call of reset_peak().
size_t peak_allocated_bytes();
void reset_peak();

}  // namespace elliptical::kernels::test
