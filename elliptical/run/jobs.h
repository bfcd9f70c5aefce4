// SPDX-License-Identifier: MIT
//
// Work in child processes: several trainings at once, each with threads of its own, none of which
// can take the others down. A child is a fork of this process, made before torch has started any
// thread here, and reports through a pipe. It dies with its parent, however that dies, so no lock
// outlives a comparison. It is in a process group of its own: Ctrl-C reaches the parent alone,
// which passes on that it shall stop.
#pragma once

#include <sys/types.h>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "elliptical/run/evaluate.h"

namespace elliptical::run {

/// Done by the child. What it throws reaches the parent as text.
using Work = std::function<void(const LoopHooks& hooks)>;

struct JobEvent {
  size_t job = 0;
  std::optional<Progress> progress;
  std::string notice;         ///< a line for people; may be empty
  std::string data;           ///< what it reads, a line for people; may be empty
  std::optional<int> status;  ///< as the program's; 0: done. The last event of a job
  std::string error;          ///< with a status other than 0
};

class Jobs {
 public:
  Jobs() = default;
  ~Jobs();  ///< ends what still runs, at once
  Jobs(const Jobs&) = delete;
  Jobs& operator=(const Jobs&) = delete;

  void start(size_t job, const Work& work);
  /// What was reported; returns after `timeout` at the latest, or when a signal came.
  std::vector<JobEvent> wait(std::chrono::milliseconds timeout);
  /// Asks all children to save and stop.
  void ask_to_stop();

 private:
  struct Child {
    pid_t pid;
    int pipe;
    std::string text;  ///< received, not yet a whole line
    std::string error;
  };
  /// False when the child has closed its end.
  bool read_from(size_t job, Child& child, std::vector<JobEvent>& events);
  static JobEvent finish(size_t job, Child& child);

  std::map<size_t, Child> children_;
};

}  // namespace elliptical::run
