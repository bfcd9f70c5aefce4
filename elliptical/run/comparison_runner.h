// SPDX-License-Identifier: MIT
//
// Carries out the plan of a comparison: trains what is not trained, measures and attacks what is
// not measured, several runs at once where asked.
#pragma once

#include <string>
#include <vector>

#include "elliptical/run/comparison_work.h"
#include "elliptical/run/evaluate.h"

namespace elliptical::run {

struct ComparisonRun {
  const ComparisonWork& work;
  std::string program;  ///< name and version, for checkpoints
  LoopHooks hooks;
};

/// RunError when a folder holds something else than the run that is planned there. Changes nothing.
void check_folders(const std::vector<PlannedRun>& plan);

/// Whether all runs are whole. One that fails does not keep the others from being done. Throws
/// Interrupted after a signal, when what was begun has been saved, and what concerns all runs
/// alike: ConfigError, SetupError.
bool carry_out(const ComparisonRun& comparison);

}  // namespace elliptical::run
