// SPDX-License-Identifier: MIT
#include "tests/run/small_runs.h"

#include <algorithm>

#include "elliptical/base/config.h"

namespace elliptical::run::testing {

LoopHooks SmallRunTest::hooks() {
  return {.notice = [this](const std::string& line) { notices_.push_back(line); },
          .progress = {},
          .data = [this](const std::string& line) { data_.push_back(line); }};
}

RunPaths SmallRunTest::start(const std::string& name, const std::vector<std::string>& changes) {
  RunOptions options;
  const bool has_data = std::any_of(changes.begin(), changes.end(), [](const std::string& change) {
    return change.starts_with("task.data.name=");
  });
  if (!has_data) apply_overrides({"task.data.train_lines=100"}, fields_of(options));
  apply_overrides({"task.batch_size=2", "task.model.num_layers=2", "task.model.dim=16",
                   "task.model.num_heads=2", "task.model.feedforward_dim=16",
                   "task.model.window=16", "task.model.cutoffs=[]", "train.steps=4",
                   "train.eval_interval=0", "train.checkpoint_interval=2"},
                  fields_of(options));
  apply_overrides(changes, fields_of(options));
  start_run({.paths = paths(name), .options = options, .program = "test", .hooks = hooks()});
  return paths(name);
}

RunPaths SmallRunTest::fork(const std::string& name, ForkRequest request) {
  request.paths = paths(name);
  request.program = "test";
  request.hooks = hooks();
  fork_run(request);
  return request.paths;
}

LoadedRun SmallRunTest::load(const RunPaths& run, int64_t step, std::optional<Weights> weights) {
  return load_run({.folder = run.folder, .step = step, .weights = weights, .hooks = hooks()});
}

}  // namespace elliptical::run::testing
