// SPDX-License-Identifier: MIT
#include "elliptical/run/start_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>

#include "elliptical/base/config.h"
#include "elliptical/base/errors.h"
#include "elliptical/run/data_check.h"
#include "elliptical/run/load_run.h"
#include "elliptical/run/train.h"

namespace elliptical::run {
namespace {

std::unique_ptr<tasks::Task> make_told_task(const RunOptions& options,
                                            tasks::TaskUse use,
                                            const std::string& vocabulary,
                                            const LoopHooks& hooks) {
  std::unique_ptr<tasks::Task> task = make_task(options, use, vocabulary);
  hooks.describe(task->data_description());
  for (const std::string& line : task->notices()) hooks.say(line);
  return task;
}

/// Data have been described: that is not done again before each validation.
LoopHooks without_data(LoopHooks hooks) {
  hooks.data = nullptr;
  return hooks;
}

}  // namespace

void start_run(const StartRequest& request) {
  check_new(request.paths);  // before the data are read, which may take a while
  const auto task = make_told_task(request.options, tasks::TaskUse::kNewRun, "", request.hooks);
  check_new_run(request.options, *task);
  require_data(request.options, *task);
  const RunLock lock = create_run_folder(request.paths);
  write_config(request.paths, config_text(request.options));
  train({.paths = request.paths,
         .options = &request.options,
         .task = task.get(),
         .program = request.program,
         .hooks = without_data(request.hooks)});
}

void resume_run(const ResumeRequest& request) {
  const RunLock lock(request.paths);
  RunOptions options;
  read_config(request.paths, options);
  // One that was stopped before its first checkpoint begins again.
  const fs::path checkpoints = request.paths.checkpoints();
  const bool is_new = checkpoint_steps(checkpoints).empty();
  // Words keep their numbers. All checkpoints of a run have the same; damage is told by `train`.
  const auto words =
      store::find_checkpoint(checkpoints, store::CheckpointPart::kVocabulary, {}, check_words);
  const auto task =
      make_told_task(options, is_new ? tasks::TaskUse::kNewRun : tasks::TaskUse::kTraining,
                     words ? words->vocabulary : "", request.hooks);
  require_data(options, *task);
  train({.paths = request.paths,
         .options = &options,
         .task = task.get(),
         .program = request.program,
         .hooks = without_data(request.hooks)});
}

void fork_run(const ForkRequest& request) {
  RunOptions options;
  read_config(request.source, options);
  apply_overrides(request.assignments, fields_of(options));
  check_new(request.paths);
  const store::Checkpoint checkpoint = choose_checkpoint(
      request.source, request.step,
      request.restart ? store::CheckpointPart::kModel : store::CheckpointPart::kAll,
      request.hooks.notice);
  const int64_t step = checkpoint.state.step;
  if (!request.restart && options.train.steps < step) {
    throw UsageError(fmt::format(
        "fork: train.steps must be at least {}, the step that it starts from, is {} (--set "
        "train.steps=N, an earlier checkpoint with --step, there are {}, or --restart)",
        step, options.train.steps,
        fmt::join(checkpoint_steps(request.source.checkpoints()), ", ")));
  }
  const auto task =
      make_told_task(options, tasks::TaskUse::kTraining, checkpoint.vocabulary, request.hooks);
  require_data(options, *task);
  check_new_run(options, *task);
  const RunLock lock = create_run_folder(request.paths);
  const TrainJob job{.paths = request.paths,
                     .options = &options,
                     .task = task.get(),
                     .program = request.program,
                     .hooks = without_data(request.hooks)};
  save_fork(job, checkpoint, request.restart);
  write_config(request.paths, config_text(options));  // from here on it is a run
  train(job);
}

}  // namespace elliptical::run
