"""Libraries in C that stand between the program and the system, to let calls do what they seldom do.

strace can make a call fail; what it can not do is half a write, an allocation that fails, or a clock that jumps.
"""

import os
import subprocess

# Every third look at the wall clock finds it a day earlier or later than the one before.
CLOCK = r"""
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static long jump(void) { static unsigned looks; return ((long)(++looks % 3) - 1) * 86400; }
int clock_gettime(clockid_t clock, struct timespec* now) {
  const long status = syscall(SYS_clock_gettime, clock, now);
  if (clock == CLOCK_REALTIME) now->tv_sec += jump();
  return (int)status;
}
int gettimeofday(struct timeval* now, void* zone) {
  struct timespec wall;
  (void)zone;
  clock_gettime(CLOCK_REALTIME, &wall);
  now->tv_sec = wall.tv_sec;
  now->tv_usec = wall.tv_nsec / 1000;
  return 0;
}
time_t time(time_t* place) {
  struct timespec wall;
  clock_gettime(CLOCK_REALTIME, &wall);
  return place ? (*place = wall.tv_sec) : wall.tv_sec;
}
"""

# Reads and writes do some of what they are asked for: 1 to 4,096 bytes, never the same number twice in a row.
SHORT = r"""
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <unistd.h>
static size_t part(size_t all) {
  static unsigned calls;
  const size_t some = 1 + (size_t)(++calls * 2654435761u >> 20);
  return all < some ? all : some;
}
ssize_t write(int file, const void* bytes, size_t size) { return syscall(SYS_write, file, bytes, part(size)); }
ssize_t read(int file, void* bytes, size_t size) { return syscall(SYS_read, file, bytes, part(size)); }
ssize_t pread(int file, void* bytes, size_t size, off_t at) { return syscall(SYS_pread64, file, bytes, part(size), at); }
ssize_t pread64(int file, void* bytes, size_t size, off_t at) { return syscall(SYS_pread64, file, bytes, part(size), at); }
"""

# The allocation number $FAILING of at least 16 KiB fails; $COUNTED, if it is set, gets how many there were.
MEMORY = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
static long number, failing = -1;
static int is_failing(size_t size) {
  if (size < 16384) return 0;
  if (failing < 0) {
    const char* wanted = getenv("FAILING");
    failing = wanted ? atol(wanted) : 0;
  }
  return __atomic_add_fetch(&number, 1, __ATOMIC_RELAXED) == failing;
}
void* malloc(size_t size) {
  static void* (*next)(size_t);
  if (!next) next = dlsym(RTLD_NEXT, "malloc");
  if (is_failing(size)) return errno = ENOMEM, (void*)0;
  return next(size);
}
int posix_memalign(void** place, size_t alignment, size_t size) {
  static int (*next)(void**, size_t, size_t);
  if (!next) next = dlsym(RTLD_NEXT, "posix_memalign");
  if (is_failing(size)) return ENOMEM;
  return next(place, alignment, size);
}
__attribute__((destructor)) static void tell(void) {
  const char* path = getenv("COUNTED");
  FILE* file = path ? fopen(path, "w") : 0;
  if (file) fprintf(file, "%ld\n", number), fclose(file);
}
"""


def environment(folder, source, **variables):
    """The environment of a program that runs with `source` between it and the system."""
    code, library = folder / "between.c", folder / "between.so"
    code.write_text(source)
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, code, "-ldl"], check=True)
    return {**os.environ, "LD_PRELOAD": str(library), **{name: str(value) for name, value in variables.items()}}
