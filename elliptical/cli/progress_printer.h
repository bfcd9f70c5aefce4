// SPDX-License-Identifier: MIT
//
// Progress on stderr: on a terminal one line that is drawn over, elsewhere a plain line now and
// then. What stderr does with it (closed, full) never matters to the work.
#pragma once

#include <chrono>
#include <string>

#include "elliptical/run/evaluate.h"

namespace elliptical::cli {

class ProgressPrinter {
 public:
  ProgressPrinter();
  ~ProgressPrinter();
  ProgressPrinter(const ProgressPrinter&) = delete;
  ProgressPrinter& operator=(const ProgressPrinter&) = delete;

  void show(const run::Progress& progress);
  /// A line that stays.
  void say(const std::string& line);
  /// The same as hooks of a loop; they refer to this object.
  run::LoopHooks hooks();
  /// The same, and data are described: for commands that train or measure once.
  run::LoopHooks telling_hooks();

 private:
  void clear();
  using Clock = std::chrono::steady_clock;
  bool is_terminal_;
  bool drawn_ = false;
  Clock::time_point next_;
};

}  // namespace elliptical::cli
