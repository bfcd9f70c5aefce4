// SPDX-License-Identifier: MIT
//
// How fast a task trains on this machine, measured on a few steps.
#pragma once

#include "elliptical/run/run_options.h"

namespace elliptical::run {

/// Units a second of whole training steps: batch, forward, backward, update. The fastest of
/// `num_steps`, after one that warms up. Changes the model's weights.
double measure_units_per_second(tasks::Task& task, const OptimizerOptions& options, int num_steps);

}  // namespace elliptical::run
