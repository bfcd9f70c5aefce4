// SPDX-License-Identifier: MIT
#include "elliptical/base/memory.h"

#include <cstdlib>  // says whether this is glibc

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace elliptical {

void keep_freed_memory() {
#ifdef __GLIBC__
  mallopt(M_MMAP_MAX, 0);         // large blocks from the heap too
  mallopt(M_TRIM_THRESHOLD, -1);  // whose end is never given back
#endif
}

}  // namespace elliptical
