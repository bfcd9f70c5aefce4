// SPDX-License-Identifier: MIT
//
// The evaluate loop of all tasks: batches of a set in order, sums in double, metrics of the task,
// records with every label.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "elliptical/measure/labels.h"
#include "elliptical/run/progress.h"
#include "elliptical/run/run_folder.h"
#include "elliptical/run/run_options.h"
#include "elliptical/tasks/task.h"

namespace elliptical::run {

/// What a loop tells whoever started it. All may be empty.
struct LoopHooks {
  std::function<void(const std::string&)> notice;     ///< one line for people
  std::function<void(const Progress&)> progress;      ///< after each unit of work
  std::function<void(const std::string&)> data = {};  ///< what is read, one line, before work
  void say(const std::string& line) const {
    if (notice) notice(line);
  }
  void describe(const std::string& line) const {
    if (data && !line.empty()) data(line);
  }
  void show(const Progress& state) const {
    if (progress) progress(state);
  }
};

using Labels = std::map<std::string, LabelValue>;

/// What every record of a run carries: whose it is, and who makes it.
Labels run_labels(const RunPaths& paths,
                  const RunOptions& options,
                  tasks::Task& task,
                  int64_t step,
                  measure::Source source);

/// Nothing when a signal asked to stop meanwhile. `labels` join those of the task and of the set.
/// The model is in evaluation mode only while this runs.
std::optional<std::vector<Record>> evaluate(tasks::Task& task,
                                            Options& eval_options,
                                            const Labels& labels,
                                            const LoopHooks& hooks,
                                            tasks::Dump* dump = nullptr);

}  // namespace elliptical::run
