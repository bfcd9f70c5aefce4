// SPDX-License-Identifier: MIT
//
// How a program that trains uses the heap.
#pragma once

namespace elliptical {

/// Freed memory stays with the process instead of going back to the kernel, which would hand it out
/// again one zeroed page at a time: a training step frees and allocates the same large tensors over
/// and over. To be called first in main; does nothing with an allocator other than glibc's.
void keep_freed_memory();

}  // namespace elliptical
