// SPDX-License-Identifier: MIT
//
// Runs that begin, go on or branch off, each trained to its end: what `train`, `resume` and `fork`
// do.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "elliptical/run/evaluate.h"
#include "elliptical/run/run_folder.h"
#include "elliptical/run/run_options.h"

namespace elliptical::run {

/// A new run of `options`.
struct StartRequest {
  RunPaths paths;  ///< to be made
  const RunOptions& options;
  std::string program;  ///< name and version, for checkpoints
  LoopHooks hooks;
};
void start_run(const StartRequest& request);

/// The same run again, from where it stopped.
struct ResumeRequest {
  RunPaths paths;
  std::string program;
  LoopHooks hooks;
};
void resume_run(const ResumeRequest& request);

/// A new run from a checkpoint of another one, with other options.
struct ForkRequest {
  RunPaths source;
  RunPaths paths;                        ///< to be made
  std::vector<std::string> assignments;  ///< "a.b=c": options that differ from the source's
  int64_t step = -1;                     ///< of the checkpoint; -1: the newest that can be used
  bool restart = false;                  ///< the weights only: step 0, new moments
  std::string program;
  LoopHooks hooks;
};
/// UsageError where the new run would have to end before the step that it starts from.
void fork_run(const ForkRequest& request);

}  // namespace elliptical::run
