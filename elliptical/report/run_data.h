// SPDX-License-Identifier: MIT
//
// What run folders say about themselves, read without torch: configuration, records, losses. This
// is all that comparisons and reports are made of; what it is measured by is described in
// docs/records.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "elliptical/base/records.h"
#include "elliptical/measure/measuring_command.h"
#include "elliptical/measure/task_measures.h"

namespace elliptical::report {

struct RunData {
  std::filesystem::path folder;
  std::string name;  ///< what tables call runs of this kind: "softmax", "matched constant"
  std::string task;
  /// What its task declares; of a task that is not known, nothing. Outlives the run.
  const measure::TaskMeasures* measures = &measure::kNoMeasures;
  int64_t seed = 0;
  std::string config;           ///< text of config.toml
  std::vector<Record> records;  ///< all complete ones
  std::vector<Record> log;      ///< losses of single steps
  /// snapshot.safetensors, empty where there is none.
  std::filesystem::path snapshot;
  /// attack.safetensors, the same.
  std::filesystem::path attack_pictures;
};

struct RunCollection {
  std::vector<RunData> runs;          ///< sorted by name, then seed, then folder
  std::vector<std::string> problems;  ///< one line for each folder or file that could not be used
  std::vector<std::string> folders_without_runs;  ///< those of them that are of a path as a whole
};

/// Each path is a run folder or a folder with run folders somewhere below it (four levels at most).
/// Nothing that is wrong with one run keeps the others from being read. `tasks`: what tasks
/// declare.
RunCollection read_runs(const std::vector<std::filesystem::path>& folders,
                        const measure::MeasureTable& tasks);

/// The run as a command that measures it names it, with the options of its recipe.
measure::CommandTarget command_target(const RunData& run);

/// Whether it was shrunk by --smoke, as its configuration or a record says.
bool is_smoke(const RunData& run);

}  // namespace elliptical::report
