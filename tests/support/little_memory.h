// SPDX-License-Identifier: MIT
//
// A process whose memory ends soon.
#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include <fstream>

namespace elliptical::test {

/// The address space may grow by so many bytes and no more while this lives.
class LittleMemory {
 public:
  explicit LittleMemory(rlim_t bytes) {
    std::ifstream file("/proc/self/statm");
    rlim_t pages = 0;
    file >> pages;
    getrlimit(RLIMIT_AS, &before_);
    rlimit limit = before_;
    limit.rlim_cur = pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + bytes;
    setrlimit(RLIMIT_AS, &limit);
  }
  ~LittleMemory() { setrlimit(RLIMIT_AS, &before_); }
  LittleMemory(const LittleMemory&) = delete;
  LittleMemory& operator=(const LittleMemory&) = delete;

 private:
  rlimit before_;
};

}  // namespace elliptical::test
