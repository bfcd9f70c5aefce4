// SPDX-License-Identifier: MIT
//
// `elliptical train`, `resume` and `fork`: a new run, the same run again, a new run from another's
// weights.
#include <iostream>

#include "elliptical/cli/progress_printer.h"
#include "elliptical/cli/session.h"
#include "elliptical/measure/labels.h"
#include "elliptical/run/measure_run.h"
#include "elliptical/run/start_run.h"
#include "elliptical/run/train.h"

namespace elliptical::cli {
namespace {

const char* const kAfterwards =
    "SIGINT (Ctrl-C) and SIGTERM save a checkpoint and stop with status 130 or 143, a second "
    "Ctrl-C\n"
    "stops at once; SIGUSR1 saves a checkpoint and goes on.";

/// What training measured last, on stdout; a run of no steps has measured nothing. Others may have
/// measured older steps since.
void print_last_records(const run::RunPaths& paths,
                        const std::string& format,
                        ProgressPrinter& printer) {
  std::vector<Record> last;
  for (Record& record : read_records(paths.records(), [](const std::string&) {})) {
    if (measure::source_of(record) != measure::Source::kTraining) continue;
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
  run::require_finite_records(last, paths.folder);
}

}  // namespace

int train(const Arguments& arguments) {
  CLI::App app("Trains what a recipe describes, in a new run folder.", "train");
  app.footer(kAfterwards);
  run::RecipeRequest recipe;
  std::filesystem::path folder;
  std::string format = "table";
  int threads = 0;
  app.add_option("RECIPE", recipe.recipe, "TOML file, see recipes/")->required();
  app.add_option("--run", folder, "folder of the run, to be made")->required();
  add_overrides(app, recipe);
  add_threads(app, threads);
  app.add_option("--format", format, "How to print results")
      ->check(one_of({"table", "json", "csv"}));
  if (!parse(app, arguments)) return 0;

  use_threads(threads);
  ProgressPrinter printer;
  const run::RunPaths paths{folder};
  const run::RunOptions options = run::read_options(recipe);
  run::start_run(
      {.paths = paths, .options = options, .program = kProgram, .hooks = printer.telling_hooks()});
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
  run::resume_run({.paths = paths, .program = kProgram, .hooks = printer.telling_hooks()});
  print_last_records(paths, format, printer);
  return 0;
}

int fork(const Arguments& arguments) {
  CLI::App app("A new run that starts from a checkpoint of another run, with other options.",
               "fork");
  app.footer(kAfterwards);
  run::ForkRequest request;
  std::filesystem::path source;
  std::string format = "table";
  int threads = 0;
  app.add_option("RUN", source, "folder of the run to start from")->required();
  app.add_option("--run", request.paths.folder, "folder of the new run, to be made")->required();
  app.add_option("--set", request.assignments, "a.b=c: sets an option; may be repeated")
      ->allow_extra_args(false);
  app.add_flag("--restart", request.restart, "take the weights only: step 0, new optimizer");
  add_step(app, request.step);
  add_threads(app, threads);
  app.add_option("--format", format, "How to print results")
      ->check(one_of({"table", "json", "csv"}));
  if (!parse(app, arguments)) return 0;

  use_threads(threads);
  ProgressPrinter printer;
  request.source = run::find_run(source);
  request.program = kProgram;
  request.hooks = printer.telling_hooks();
  run::fork_run(request);
  print_last_records(request.paths, format, printer);
  return 0;
}

}  // namespace elliptical::cli
