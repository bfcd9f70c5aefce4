// SPDX-License-Identifier: MIT
//
// A finished or running run, ready to be measured: its configuration, its task, and the weights of
// one of its checkpoints. Reading changes nothing in the folder and needs no lock.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "elliptical/run/evaluate.h"
#include "elliptical/run/run_folder.h"
#include "elliptical/run/run_options.h"
#include "elliptical/store/checkpoint.h"

namespace elliptical::run {

/// For the checkpoints of runs, whose words are a data::Vocabulary (store::CheckWords).
void check_words(const std::string& vocabulary, const std::string& name);

/// Which checkpoint of a run, and which of its weights.
struct LoadRequest {
  std::filesystem::path folder;
  int64_t step = -1;               ///< -1: the newest that can be used
  std::optional<Weights> weights;  ///< absent: those that the run is measured by
  LoopHooks hooks;
};

struct LoadedRun {
  RunPaths paths;
  RunOptions options;
  std::unique_ptr<tasks::Task> task;
  int64_t step = 0;
  Weights weights = Weights::kTrained;
};

/// RunError as `choose_weights`, and where weights are not finite.
LoadedRun load_run(const LoadRequest& request);

/// The checkpoint of that step, or for -1 the newest that can be used. RunError where there is
/// none; it lists those that are there.
store::Checkpoint choose_checkpoint(const RunPaths& paths,
                                    int64_t step,
                                    store::CheckpointPart part,
                                    const Notice& notice);

/// Weights of a run that are in no model yet.
struct ChosenWeights {
  store::Checkpoint checkpoint;
  Weights kind = Weights::kTrained;
  const std::map<std::string, at::Tensor>& tensors() const;
  /// Copies them into a model that is to be measured; RunError where they are not finite.
  void copy_into(torch::nn::Module& model) const;
};

/// RunError where there is no such checkpoint or no average and one is asked for.
ChosenWeights choose_weights(const RunPaths& paths,
                             const RunOptions& options,
                             const LoadRequest& request);

/// What every record of a measurement carries.
Labels loaded_labels(const LoadedRun& loaded, measure::Source source);

}  // namespace elliptical::run
