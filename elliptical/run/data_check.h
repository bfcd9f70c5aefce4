// SPDX-License-Identifier: MIT
//
// What is checked before the first step: that everything that training will read and measure is
// there, and, of a run that goes on, that it is what it was.
#pragma once

#include "elliptical/run/run_folder.h"
#include "elliptical/run/run_options.h"
#include "elliptical/store/checkpoint.h"
#include "elliptical/tasks/task.h"

namespace elliptical::run {

/// Opens the training data and every split that evaluations of the task may read, as they would.
/// Throws DataError where one can not be opened, does not fit the model or has nothing to measure:
/// hours of training would end there. Pictures are not decoded: `elliptical data verify` does that.
/// A run of no steps reads nothing.
void require_data(const RunOptions& options, tasks::Task& task);

/// Throws RunError with the differences unless options and data are those of the checkpoint.
void require_unchanged(const RunPaths& paths,
                       const RunOptions& options,
                       const tasks::Task& task,
                       const CheckpointState& before);

}  // namespace elliptical::run
