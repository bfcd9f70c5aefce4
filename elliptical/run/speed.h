// SPDX-License-Identifier: MIT
//
// How fast a task trains on this machine, measured on a few steps.
#pragma once

#include "elliptical/run/run_options.h"

namespace elliptical::run {

/// A training step takes `update_seconds`, whatever its batch, and `unit_seconds` for each unit of
/// it.
struct StepTime {
  double unit_seconds = 0;    ///< of batch, forward and backward
  double update_seconds = 0;  ///< of the optimizer
  double seconds(int64_t num_units) const {
    return update_seconds + unit_seconds * static_cast<double>(num_units);
  }
};

/// The fastest of `num_steps`, after one that warms up. Changes the model's weights.
StepTime measure_step(tasks::Task& task, const OptimizerOptions& options, int num_steps);

}  // namespace elliptical::run
