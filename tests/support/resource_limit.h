// SPDX-License-Identifier: MIT
//
// A process that soon has no more of something: of memory, of open files, of room in a file.
#pragma once

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>

namespace elliptical::test {

/// A limit of setrlimit (RLIMIT_AS, ...) while this lives.
class ResourceLimit {
 public:
  ResourceLimit(int resource, rlim_t most) : resource_(resource) {
    getrlimit(static_cast<__rlimit_resource_t>(resource_), &before_);
    rlimit limit = before_;
    limit.rlim_cur = most;
    setrlimit(static_cast<__rlimit_resource_t>(resource_), &limit);
  }
  ~ResourceLimit() { setrlimit(static_cast<__rlimit_resource_t>(resource_), &before_); }
  ResourceLimit(const ResourceLimit&) = delete;
  ResourceLimit& operator=(const ResourceLimit&) = delete;

 private:
  int resource_;
  rlimit before_;
};

/// Every attempt to open a file fails (EMFILE).
inline ResourceLimit no_open_files() {
  const int next = open("/dev/null", O_RDONLY | O_CLOEXEC);
  close(next);
  return {RLIMIT_NOFILE, static_cast<rlim_t>(next)};
}

/// The address space may grow by so many bytes and no more.
inline ResourceLimit little_memory(rlim_t bytes) {
  std::ifstream file("/proc/self/statm");
  rlim_t pages = 0;
  file >> pages;
  return {RLIMIT_AS, pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + bytes};
}

}  // namespace elliptical::test
