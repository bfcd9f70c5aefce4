// SPDX-License-Identifier: MIT
//
// `elliptical train`, `resume` and `fork`: a new run, the same run again, a new run from another's
// weights.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iostream>

#include "elliptical/base/config.h"
#include "elliptical/base/errors.h"
#include "elliptical/cli/progress_printer.h"
#include "elliptical/cli/session.h"
#include "elliptical/run/data_check.h"
#include "elliptical/run/train.h"

namespace elliptical::cli {
namespace {

const char* const kAfterwards =
    "SIGINT (Ctrl-C) and SIGTERM save a checkpoint and stop with status 130 or 143, a second "
    "Ctrl-C\n"
    "stops at once; SIGUSR1 saves a checkpoint and goes on.";

/// What the run measured last, on stdout; a run of no steps has measured nothing.
void print_last_records(const run::RunPaths& paths,
                        const std::string& format,
                        ProgressPrinter& printer) {
  std::vector<Record> last;
  for (Record& record : read_records(paths.records(), [](const std::string&) {})) {
    if (!last.empty() && last.front().labels["step"] != record.labels["step"]) last.clear();
    last.push_back(std::move(record));
  }
  print_records(std::cout, last, format);
  const std::string run = paths.folder.string();
  if (last.empty()) {
    printer.say(run +
                ": holds its first weights, nothing was trained or measured (measure them: "
                "elliptical eval " +
                run + ")");
  }
  run::RunOptions options;
  run::read_config(paths, options);
  warn_of_smoke(options, printer.hooks());
  require_finite_records(last, paths.folder);
}

}  // namespace

int train(const Arguments& arguments) {
  CLI::App app("Trains what a recipe describes, in a new run folder.", "train");
  app.footer(kAfterwards);
  RecipeArguments recipe;
  std::filesystem::path folder;
  std::string format = "table";
  int threads = 0;
  app.add_option("RECIPE", recipe.recipe, "TOML file, see recipes/")->required();
  app.add_option("--run", folder, "folder of the run, to be made")->required();
  recipe.add_overrides(app);
  add_threads(app, threads);
  app.add_option("--format", format, "How to print results")
      ->check(one_of({"table", "json", "csv"}));
  if (!parse(app, arguments)) return 0;

  use_threads(threads);
  ProgressPrinter printer;
  const run::RunPaths paths{folder};
  start_run(paths, read_recipe_options(recipe), printer.telling_hooks());
  print_last_records(paths, format, printer);
  return 0;
}

int resume(const Arguments& arguments) {
  CLI::App app("Continues a run where it stopped; the result is the same as without the stop.",
               "resume");
  app.footer(kAfterwards);
  std::filesystem::path folder;
  std::string format = "table";
  int threads = 0;
  app.add_option("RUN", folder, "folder of a run")->required();
  add_threads(app, threads);
  app.add_option("--format", format, "How to print results")
      ->check(one_of({"table", "json", "csv"}));
  if (!parse(app, arguments)) return 0;

  use_threads(threads);
  ProgressPrinter printer;
  const run::RunPaths paths = run::find_run(folder);
  resume_run(paths, printer.telling_hooks());
  print_last_records(paths, format, printer);
  return 0;
}

int fork(const Arguments& arguments) {
  CLI::App app("A new run that starts from a checkpoint of another run, with other options.",
               "fork");
  app.footer(kAfterwards);
  std::filesystem::path source, folder;
  std::vector<std::string> assignments;
  std::string format = "table";
  bool restart = false;
  int64_t step = -1;
  int threads = 0;
  app.add_option("RUN", source, "folder of the run to start from")->required();
  app.add_option("--run", folder, "folder of the new run, to be made")->required();
  app.add_option("--set", assignments, "a.b=c: sets an option; may be repeated")
      ->allow_extra_args(false);
  app.add_flag("--restart", restart, "take the weights only: step 0, new optimizer");
  add_step(app, step);
  add_threads(app, threads);
  app.add_option("--format", format, "How to print results")
      ->check(one_of({"table", "json", "csv"}));
  if (!parse(app, arguments)) return 0;

  use_threads(threads);
  ProgressPrinter printer;
  const run::RunPaths from = run::find_run(source), paths{folder};
  run::RunOptions options;
  run::read_config(from, options);
  apply_overrides(assignments, fields_of(options));
  run::check_new(paths);
  const store::Checkpoint checkpoint = choose_checkpoint(
      from, step, restart ? store::CheckpointPart::kModel : store::CheckpointPart::kAll,
      printer.hooks());
  if (!restart && options.train.steps < checkpoint.state.step) {
    throw UsageError(fmt::format(
        "fork: train.steps must be at least {}, the step that it starts from, is {} (--set "
        "train.steps=N, an earlier checkpoint with --step, there are {}, or --restart)",
        checkpoint.state.step, options.train.steps,
        fmt::join(checkpoint_steps(from.checkpoints()), ", ")));
  }
  const std::unique_ptr<tasks::Task> task = make_task(options, tasks::TaskUse::kTraining);
  printer.telling_hooks().describe(task->data_description());
  for (const std::string& line : task->notices()) printer.say(line);
  run::require_data(options, *task);
  run::check_new_run(options, *task);
  const run::RunLock lock = run::create_run_folder(paths);
  const run::TrainJob job{.paths = paths,
                          .options = &options,
                          .task = task.get(),
                          .program = kProgram,
                          .hooks = printer.hooks()};
  run::save_fork(job, checkpoint, restart);
  run::write_config(paths, run::config_text(options));  // from here on it is a run
  run::train(job);
  print_last_records(paths, format, printer);
  return 0;
}

}  // namespace elliptical::cli
