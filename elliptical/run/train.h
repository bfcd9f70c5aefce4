// SPDX-License-Identifier: MIT
//
// The train loop of all tasks. It always continues: a new run is one without a checkpoint. A step
// is a function of the weights, the seed and its number, so a run that was stopped anywhere ends
// with the same bits as one that was not.
#pragma once

#include <string>

#include "elliptical/run/evaluate.h"
#include "elliptical/run/run_folder.h"
#include "elliptical/run/run_options.h"
#include "elliptical/store/checkpoint.h"

namespace elliptical::run {

struct TrainJob {
  RunPaths paths;  ///< config.toml is there, and the caller holds the lock
  const RunOptions* options = nullptr;
  tasks::Task* task = nullptr;
  std::string program;  ///< name and version, for checkpoints
  LoopHooks hooks;
};

/// Trains from the newest usable checkpoint to the last step. Throws RunError when configuration or
/// data are not those of the checkpoint, or when a loss or gradient is not finite; Interrupted
/// after a signal, with a checkpoint saved.
void train(const TrainJob& job);

/// Throws ConfigError where options of a new run ask for what its task has not.
void check_new_run(const RunOptions& options, const tasks::Task& task);

/// Saves the weights of `source` as the first checkpoint of `job`, which is a new run: at the same
/// step with the moments of the optimizer, or, with `restart`, at step 0 without.
void save_fork(const TrainJob& job, const store::Checkpoint& source, bool restart);

/// RunOptions as a recipe.
std::string config_text(const RunOptions& options);

/// The options in config.toml of a run.
void read_config(const RunPaths& paths, RunOptions& options);

}  // namespace elliptical::run
