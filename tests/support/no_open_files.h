// SPDX-License-Identifier: MIT
//
// A process that may open no file more.
#pragma once

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

namespace elliptical::test {

/// Every attempt to open a file fails (EMFILE) while this lives.
class NoOpenFiles {
 public:
  NoOpenFiles() {
    const int next = open("/dev/null", O_RDONLY | O_CLOEXEC);
    close(next);
    getrlimit(RLIMIT_NOFILE, &before_);
    rlimit limit = before_;
    limit.rlim_cur = static_cast<rlim_t>(next);
    setrlimit(RLIMIT_NOFILE, &limit);
  }
  ~NoOpenFiles() { setrlimit(RLIMIT_NOFILE, &before_); }
  NoOpenFiles(const NoOpenFiles&) = delete;
  NoOpenFiles& operator=(const NoOpenFiles&) = delete;

 private:
  rlimit before_;
};

}  // namespace elliptical::test
