// SPDX-License-Identifier: MIT
//
// Carries out the plan of a comparison: trains what is not trained, measures and attacks what is
// not measured, several runs at once where asked.
#pragma once

#include <string>
#include <vector>

#include "elliptical/cli/progress_printer.h"
#include "elliptical/run/attack_plan.h"
#include "elliptical/run/comparison_plan.h"

namespace elliptical::cli {

struct ComparisonWork {
  std::vector<run::PlannedRun> plan;
  std::string split = "test";
  std::string method;      ///< of reading text: "block", "sliding", "stream"; empty of pictures
  int64_t num_tokens = 0;  ///< of that split, where they must be known to tell the cost
  /// How damaged data are measured: what records tell of it, and the options of the evaluation;
  /// none of those: clean data only.
  std::string perturbation;
  double strength = 0;
  std::string corruption;
  std::vector<std::string> damage;
  run::AttackPlan attacks;   ///< strict, through the metric; no cases: none
  int64_t num_pictures = 0;  ///< damaged and attacked ones: only so many; 0: all
  int num_jobs = 1;
  int num_threads = 0;  ///< of all jobs together; 0: all cores
};

/// RunError when a folder holds something else than the run that is planned there. Changes nothing.
void check_folders(const std::vector<run::PlannedRun>& plan);

/// Whether all runs are whole. One that fails does not keep the others from being done. Throws
/// Interrupted after a signal, when what was begun has been saved, and what concerns all runs
/// alike: ConfigError, SetupError.
bool carry_out(const ComparisonWork& work, ProgressPrinter& printer);

}  // namespace elliptical::cli
