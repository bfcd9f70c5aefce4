// SPDX-License-Identifier: MIT
#include "tests/kernels/allocation_count.h"

#include <errno.h>
#include <malloc.h>

#include <atomic>

// glibc's own functions, which the replacements below call.
extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* pointer, size_t size);
void* __libc_memalign(size_t alignment, size_t size);
void __libc_free(void* pointer);
}

namespace elliptical::kernels::test {
namespace {

std::atomic<size_t> current = 0;
std::atomic<size_t> peak = 0;

void* added(void* pointer) {
  if (!pointer) return pointer;
  const size_t now = current += malloc_usable_size(pointer);
  size_t seen = peak;
  while (seen < now && !peak.compare_exchange_weak(seen, now)) {
  }
  return pointer;
}

void removed(void* pointer) {
  if (pointer) current -= malloc_usable_size(pointer);
}

}  // namespace

size_t allocated_bytes() { return current; }
size_t peak_allocated_bytes() { return peak; }
void reset_peak() { peak = current.load(); }

}  // namespace elliptical::kernels::test

extern "C" {

using elliptical::kernels::test::added;
using elliptical::kernels::test::removed;

void* malloc(size_t size) { return added(__libc_malloc(size)); }
void* calloc(size_t count, size_t size) { return added(__libc_calloc(count, size)); }
void* memalign(size_t alignment, size_t size) { return added(__libc_memalign(alignment, size)); }
void* aligned_alloc(size_t alignment, size_t size) {
  return added(__libc_memalign(alignment, size));
}
int posix_memalign(void** pointer, size_t alignment, size_t size) {
  *pointer = added(__libc_memalign(alignment, size));
  return *pointer ? 0 : ENOMEM;
}
void* realloc(void* pointer, size_t size) {
  removed(pointer);
  return added(__libc_realloc(pointer, size));
}
void free(void* pointer) {
  removed(pointer);
  __libc_free(pointer);
}
}
