// SPDX-License-Identifier: MIT
//
// `elliptical attack RUN --attack pgd --eps 1/255`: what is left of a classifier's accuracy when
// somebody changes the pictures on purpose. The records join those of the run.
#include <torch/torch.h>

#include <iostream>

#include "elliptical/base/errors.h"
#include "elliptical/base/names.h"
#include "elliptical/cli/progress_printer.h"
#include "elliptical/cli/session.h"
#include "elliptical/measure/attack_flags.h"
#include "elliptical/measure/circumstances.h"
#include "elliptical/run/attack_pictures.h"
#include "elliptical/run/measure_run.h"

namespace elliptical::cli {
namespace {

/// What the attacks noticed, one line for each flag of each of them.
std::vector<std::string> flag_lines(const std::vector<Record>& records) {
  std::vector<std::string> lines;
  for (const Record& record : records) {
    if (record.metric != "robust_accuracy") continue;
    const measure::AttackKind attack = measure::attack_of(record);
    const std::string name = attack.name + ", " + join(measure::attack_details(attack));
    for (const std::string& doubt : measure::attack_doubts(record)) {
      lines.push_back(name + ": accuracy may be too high, " + doubt);
    }
    for (const std::string& remark : measure::attack_remarks(record)) {
      lines.push_back(measure::remark_text(attack, remark));
    }
  }
  return lines;
}

}  // namespace

int attack(const Arguments& arguments) {
  CLI::App app(
      "Robust accuracy of a run's newest checkpoint. A run that was stopped goes on with the same "
      "command; finished batches are in attacks.jsonl of the run, some pictures of a strict attack "
      "in attack.safetensors, for the report.",
      "attack");
  std::filesystem::path folder, dump_path;
  run::AttackWords words;
  std::vector<std::string> eval_assignments;
  std::string format = "table", split, batch_size, max_pictures;
  int64_t step = -1, seed = 1;
  int threads = 0;
  std::optional<run::Weights> weights;
  app.add_option("RUN", folder, "folder of a run that classifies pictures")->required();
  app.add_option("--attack", words.attacks, "names, a,b,c (elliptical list attacks)")->required();
  app.add_option("--eps", words.eps, "largest change of a number: 1/255,0.01")->required();
  app.add_option("--profile", words.profile,
                 "strict: pixels, true labels; published: as released with the paper")
      ->check(one_of({"strict", "published"}));
  app.add_option("--metric-gradient", words.metric_gradient,
                 "whether attacks see through the metric; strict: through, published: detached")
      ->check(one_of({"through", "detached", "both"}));
  app.add_option("--split", split, "part of the data (--eval-set split=...)");
  app.add_option("--batch-size", batch_size, "pictures at a time (--eval-set batch_size=...)");
  app.add_option("--max-pictures", max_pictures,
                 "only so many, of all classes alike (--eval-set max_pictures=...)")
      ->check(CLI::PositiveNumber);
  app.add_option("--set", words.assignments,
                 "pgd.steps=7: sets an option of an attack; may be repeated")
      ->allow_extra_args(false);
  app.add_option("--eval-set", eval_assignments,
                 "key=value: sets an option of the evaluation, as `eval --set` does")
      ->allow_extra_args(false);
  app.add_option("--seed", seed, "of random starts and searches")->check(CLI::NonNegativeNumber);
  add_step(app, step);
  add_weights(app, weights);
  app.add_option("--dump", dump_path,
                 "writes pictures, labels and logits to this safetensors file; of one attack and "
                 "one eps");
  add_threads(app, threads);
  app.add_option("--format", format, "How to print; none: the records are in records.jsonl")
      ->check(one_of({"table", "json", "csv", "none"}));
  if (!parse(app, arguments)) return 0;

  run::AttackPlan plan = run::make_attack_plan(words);
  plan.seed = seed;
  if (!dump_path.empty() && plan.cases.size() != 1) {
    throw UsageError("--dump: must be of one attack, one eps and one --metric-gradient, got " +
                     std::to_string(plan.cases.size()) + " combinations");
  }
  for (const auto& [key, value] :
       {std::pair("split=", &split), std::pair("batch_size=", &batch_size),
        std::pair("max_pictures=", &max_pictures)}) {
    if (!value->empty()) eval_assignments.insert(eval_assignments.begin(), key + *value);
  }

  use_threads(threads);
  ProgressPrinter printer;
  const run::LoopHooks hooks = printer.telling_hooks();
  run::LoadedRun loaded =
      run::load_run({.folder = folder, .step = step, .weights = weights, .hooks = hooks});
  run::AttackDump dump;
  const auto tell = [&](const std::vector<Record>& records) {
    if (format != "none") print_records(std::cout, records, format);
    std::cout.flush();
    if (dump_path.empty()) return;
    store::replace_tensors(
        dump_path, run::concatenated(dump.tensors),
        run::attack_metadata(plan.cases.front(), plan.profile, dump.class_names));
  };
  const std::vector<Record> records = run::attack_run({.run = loaded,
                                                       .plan = plan,
                                                       .assignments = eval_assignments,
                                                       .program = kProgram,
                                                       .hooks = hooks,
                                                       .dump = dump_path.empty() ? nullptr : &dump,
                                                       .told = tell});
  warn_of_smoke(loaded.options, hooks);
  for (const std::string& line : flag_lines(records)) printer.say(line);
  return 0;
}

}  // namespace elliptical::cli
