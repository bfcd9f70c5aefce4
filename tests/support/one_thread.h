// SPDX-License-Identifier: MIT
#pragma once

#include <ATen/Parallel.h>

namespace elliptical::support {

/// For thousands of passes over tiny tensors, where threads only wait for each other: one thread as
/// long as this lives.
class OneThread {
 public:
  OneThread() { at::set_num_threads(1); }
  ~OneThread() { at::set_num_threads(before_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_ = at::get_num_threads();
};

}  // namespace elliptical::support
