// SPDX-License-Identifier: MIT
//
// Measurements of a loaded run, on data as they are, damaged or attacked: what `eval` and `attack`
// do. The records join those of the run.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "elliptical/run/attack_plan.h"
#include "elliptical/run/load_run.h"
#include "elliptical/store/tensor_files.h"

namespace elliptical::run {

/// Is given the records of a measurement before they are appended to the run's, so that the numbers
/// are seen even where that fails. What it throws comes after that.
using Told = std::function<void(const std::vector<Record>&)>;

struct EvaluateRequest {
  LoadedRun& run;
  std::vector<std::string> assignments;  ///< "a=b": options of the evaluation
  LoopHooks hooks;
  tasks::Dump* dump = nullptr;  ///< if given, results of single targets are left there
  Told told;
};
/// Evaluates, leaves a snapshot for the report where the task makes one. Throws Interrupted after a
/// signal; then nothing was recorded.
std::vector<Record> evaluate_run(const EvaluateRequest& request);

/// What an attack of one case leaves beside its records.
struct AttackDump {
  tasks::Dump tensors;
  std::vector<std::string> class_names;
};

struct AttackRunRequest {
  LoadedRun& run;
  const AttackPlan& plan;
  std::vector<std::string> assignments;  ///< "a=b": options of the evaluation
  std::string program;                   ///< name and version: what another one began starts over
  LoopHooks hooks;
  /// If given, of a plan with one case; without one some pictures of a strict attack are left for
  /// the report.
  AttackDump* dump = nullptr;
  Told told;
};
/// Finished batches are used. Throws Interrupted after a signal, UsageError where the task has no
/// pictures, RunError where another process attacks the run.
std::vector<Record> attack_run(const AttackRunRequest& request);

/// Results of a dump, whole, as a file has them.
store::NamedTensors concatenated(const tasks::Dump& dump);

/// RunError where a measured number is not finite; parts of a measurement do not count. For after
/// everything has been recorded and told: a run that diverged must not end like one that did not.
void require_finite_records(const std::vector<Record>& records,
                            const std::filesystem::path& folder);

}  // namespace elliptical::run
