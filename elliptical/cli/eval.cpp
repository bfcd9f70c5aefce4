// SPDX-License-Identifier: MIT
//
// `elliptical eval RUN`: measures a run's newest checkpoint and appends the records to the run's.
#include <torch/torch.h>

#include <iostream>

#include "elliptical/cli/damage_arguments.h"
#include "elliptical/cli/progress_printer.h"
#include "elliptical/cli/session.h"
#include "elliptical/run/measure_run.h"

namespace elliptical::cli {

int eval(const Arguments& arguments) {
  CLI::App app("Measures a run's newest checkpoint; the records join records.jsonl of the run.",
               "eval");
  std::filesystem::path folder, dump_path;
  std::vector<std::string> assignments;
  std::string format = "table";
  int64_t step = -1;
  int threads = 0;
  std::optional<run::Weights> weights;
  std::vector<Shorthand> shorthands = eval_shorthands();
  app.add_option("RUN", folder, "folder of a run")->required();
  for (Shorthand& shorthand : shorthands) {
    app.add_option(shorthand.flag, shorthand.value,
                   shorthand.help + " (--set " + shorthand.key + "=...)");
  }
  app.add_option("--set", assignments, "a.b=c: sets an option of the evaluation; may be repeated")
      ->allow_extra_args(false);
  add_step(app, step);
  add_weights(app, weights);
  app.add_option("--dump", dump_path, "writes per-target results to this safetensors file");
  add_threads(app, threads);
  app.add_option("--format", format, "How to print")->check(one_of({"table", "json", "csv"}));
  if (!parse(app, arguments)) return 0;

  use_threads(threads);
  std::vector<std::string> all;
  for (const Shorthand& shorthand : shorthands) {
    if (!shorthand.value.empty()) all.push_back(shorthand.key + "=" + shorthand.value);
  }
  all.insert(all.end(), assignments.begin(), assignments.end());

  ProgressPrinter printer;
  const run::LoopHooks hooks = printer.telling_hooks();
  run::LoadedRun loaded =
      run::load_run({.folder = folder, .step = step, .weights = weights, .hooks = hooks});
  tasks::Dump dump;
  const auto tell = [&](const std::vector<Record>& records) {
    print_records(std::cout, records, format);
    std::cout.flush();
    if (!dump_path.empty()) store::replace_tensors(dump_path, run::concatenated(dump));
  };
  const std::vector<Record> records =
      run::evaluate_run({.run = loaded,
                         .assignments = all,
                         .hooks = hooks,
                         .dump = dump_path.empty() ? nullptr : &dump,
                         .told = tell});
  warn_of_smoke(loaded.options, hooks);
  run::require_finite_records(records, folder);
  return 0;
}

}  // namespace elliptical::cli
