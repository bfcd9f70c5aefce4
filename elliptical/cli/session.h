// SPDX-License-Identifier: MIT
//
// What the commands around runs share: a recipe with its overrides, the task it describes, an
// existing run with its weights.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "elliptical/cli/arguments.h"
#include "elliptical/run/attack_plan.h"
#include "elliptical/run/checkpoint.h"
#include "elliptical/run/evaluate.h"
#include "elliptical/run/run_folder.h"
#include "elliptical/run/run_options.h"
#include "elliptical/run/tensor_files.h"

namespace elliptical::cli {

/// The program's name and version, as checkpoints carry them.
extern const char* const kProgram;

/// How a recipe is changed on the command line.
struct RecipeArguments {
  std::filesystem::path recipe;
  std::vector<std::string> assignments;  ///< "a.b=c"
  bool smoke = false;
  void add_overrides(CLI::App& app);  ///< --set, --smoke
};

/// `--threads`, 0 for all cores.
void add_threads(CLI::App& app, int& threads);
void use_threads(int threads);

run::RunOptions read_recipe_options(const RecipeArguments& arguments);

std::unique_ptr<tasks::Task> make_task(const run::RunOptions& options, tasks::TaskUse use);

/// `--weights`: trained or ema; nothing where it is not given.
void add_weights(CLI::App& app, std::optional<run::Weights>& weights);

/// A finished or running run, ready to be evaluated.
struct LoadedRun {
  run::RunPaths paths;
  run::RunOptions options;
  std::unique_ptr<tasks::Task> task;
  int64_t step = 0;
  run::Weights weights = run::Weights::kTrained;
};

/// `--step`: which checkpoint; -1, the newest that can be used, unless said.
void add_step(CLI::App& app, int64_t& step);

/// The checkpoint of that step, or for -1 the newest that can be used. RunError where there is
/// none; it lists those that are there.
run::Checkpoint choose_checkpoint(const run::RunPaths& paths,
                                  int64_t step,
                                  run::CheckpointPart part,
                                  const run::LoopHooks& hooks);

/// `step` as above. Without `weights` those that the run is measured by (train.eval_weights).
/// RunError where there is no average and one is asked for, and where weights are not finite.
LoadedRun load_run(const std::filesystem::path& folder,
                   int64_t step,
                   const run::LoopHooks& hooks,
                   std::optional<run::Weights> weights = std::nullopt);

/// What every record of a measurement carries; `source`: "eval", "attack".
run::Labels loaded_labels(const LoadedRun& loaded, measure::Source source);

/// Is given the records of a measurement before they are appended to the run's, so that the numbers
/// are seen even where that fails. What it throws comes after that.
using Told = std::function<void(const std::vector<Record>&)>;

/// Evaluates and appends the records to the run's. `assignments` are evaluation options. Throws
/// Interrupted after a signal.
std::vector<Record> evaluate_run(LoadedRun& loaded,
                                 const std::vector<std::string>& assignments,
                                 const run::LoopHooks& hooks,
                                 tasks::Dump* dump = nullptr,
                                 const Told& told = {});

/// Results of a dump, whole, as a file has them.
run::NamedTensors concatenated(const tasks::Dump& dump);

/// If given, what an attack of one case leaves beside its records.
struct AttackDump {
  tasks::Dump tensors;
  std::vector<std::string> class_names;
};

/// Attacks and appends the records to the run's; without a dump some pictures of a strict attack
/// are left for the report. `assignments` are evaluation options. Finished batches are used; throws
/// Interrupted after a signal, UsageError where the task has no pictures.
std::vector<Record> attack_run(LoadedRun& loaded,
                               const run::AttackPlan& plan,
                               const std::vector<std::string>& assignments,
                               const run::LoopHooks& hooks,
                               AttackDump* dump = nullptr,
                               const Told& told = {});

/// Makes a new run from `options` and trains it to its end.
void start_run(const run::RunPaths& paths,
               const run::RunOptions& options,
               const run::LoopHooks& hooks);

/// Trains an existing run to its end.
void resume_run(const run::RunPaths& paths, const run::LoopHooks& hooks);

/// Says of a smoke run that it is one.
void warn_of_smoke(const run::RunOptions& options, const run::LoopHooks& hooks);

/// RunError where a measured number is not finite; parts of a measurement do not count. For after
/// everything has been recorded and printed: a run that diverged must not end like one that did
/// not.
void require_finite_records(const std::vector<Record>& records,
                            const std::filesystem::path& folder);

/// Prints records: "table", "json" or "csv".
void print_records(std::ostream& stream,
                   const std::vector<Record>& records,
                   const std::string& format);

}  // namespace elliptical::cli
