// SPDX-License-Identifier: MIT
#pragma once

#include <ATen/Parallel.h>

namespace elliptical::support {

/// Restores the number of threads at the end of a test.
class ThreadCount {
 public:
  ThreadCount() = default;
  ~ThreadCount() { at::set_num_threads(before_); }
  ThreadCount(const ThreadCount&) = delete;
  ThreadCount& operator=(const ThreadCount&) = delete;

 private:
  int before_ = at::get_num_threads();
};

/// For thousands of passes over tiny tensors, where threads only wait for each other: one thread as
/// long as this lives.
class OneThread : public ThreadCount {
 public:
  OneThread() { at::set_num_threads(1); }
};

}  // namespace elliptical::support
