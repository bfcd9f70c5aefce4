// SPDX-License-Identifier: MIT
//
// Which runs may stand in one table, and what is to be said about the others: runs of another task
// or other data, unfinished ones, two of the same name and seed, and runs whose configurations
// differ in more than the table tells.
#pragma once

#include <string>
#include <vector>

#include "elliptical/report/run_data.h"

namespace elliptical::report {

struct SelectedRun {
  const RunData* run = nullptr;
  int64_t step = 0;  ///< of its final weights
};

struct RunSelection {
  std::string task, data;
  std::vector<SelectedRun> runs;      ///< in the order they were given
  std::vector<std::string> problems;  ///< with what to do about each
};

/// `reference`: the name that others are compared with; the first one's where nobody has it.
RunSelection select_runs(const std::vector<RunData>& runs, const std::string& reference);

}  // namespace elliptical::report
