// SPDX-License-Identifier: MIT
#include "elliptical/cli/session.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <optional>
#include <set>

#include "elliptical/base/config.h"
#include "elliptical/base/errors.h"
#include "elliptical/base/names.h"
#include "elliptical/cli/table.h"
#include "elliptical/measure/circumstances.h"
#include "elliptical/measure/labels.h"
#include "elliptical/report/comparison.h"
#include "elliptical/run/attack_evaluation.h"
#include "elliptical/run/attack_records.h"
#include "elliptical/run/data_check.h"
#include "elliptical/run/non_finite.h"
#include "elliptical/run/signals.h"
#include "elliptical/run/train.h"

namespace elliptical::cli {

const char* const kProgram = "elliptical " ELLIPTICAL_VERSION;

void RecipeArguments::add_overrides(CLI::App& app) {
  app.add_option("--set", assignments, "a.b=c: sets an option; may be repeated")
      ->allow_extra_args(false);
  app.add_flag("--smoke", smoke, "shrink everything to something that ends within seconds");
}

void add_threads(CLI::App& app, int& threads) {
  app.add_option("--threads", threads, "threads; all cores unless said")
      ->check(CLI::Range(1, 4096));
}

void use_threads(int threads) {
  if (threads > 0) at::set_num_threads(threads);
}

run::RunOptions read_recipe_options(const RecipeArguments& arguments) {
  run::RunOptions options;
  read_recipe(arguments.recipe, fields_of(options));
  if (arguments.smoke) {
    run::shrink(options);
    tasks::find_task(options.task.name()).shrink(options.task.options());
  }
  apply_overrides(arguments.assignments, fields_of(options));
  run::check(options.train);
  return options;
}

std::unique_ptr<tasks::Task> make_task(const run::RunOptions& options, tasks::TaskUse use) {
  run::RunOptions copy = options;
  return tasks::find_task(copy.task.name())
      .make(copy.task.options(), {static_cast<uint64_t>(copy.seed), use});
}

void add_weights(CLI::App& app, std::optional<run::Weights>& weights) {
  app.add_option_function<std::string>(
         "--weights",
         [&weights](const std::string& name) { weights = run::weights_from_string(name); },
         "trained, or ema: their moving average (train.ema_decay); as train.eval_weights unless "
         "said")
      ->check(one_of({"trained", "ema"}));
}

namespace {

/// What weights that are not finite say or measure means nothing, and looks like a result.
void require_finite(const torch::nn::Module& model,
                    const std::filesystem::path& checkpoint,
                    bool is_average) {
  const std::string name = run::non_finite_tensor(run::named_tensors(model));
  if (name.empty()) return;
  throw RunError(fmt::format(
      "{}: weights must be finite, {} is not (choose an older checkpoint with --step, or train it "
      "again with a lower optimizer.learning_rate)",
      (checkpoint / (is_average ? "ema.safetensors" : "model.safetensors")).string(), name));
}

/// Tells, then records, whatever becomes of the telling.
void tell_and_record(const std::vector<Record>& records,
                     const Told& told,
                     const std::function<void()>& record) {
  std::exception_ptr failure;
  try {
    if (told) told(records);
  } catch (...) {
    failure = std::current_exception();
  }
  record();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace

void add_step(CLI::App& app, int64_t& step) {
  app.add_option("--step", step, "which checkpoint; the newest unless said")
      ->check(CLI::NonNegativeNumber);
}

run::Checkpoint choose_checkpoint(const run::RunPaths& paths,
                                  int64_t step,
                                  run::CheckpointPart part,
                                  const run::LoopHooks& hooks) {
  const std::string run = paths.folder.string();
  const std::vector<int64_t> steps = run::checkpoint_steps(paths.checkpoints());
  if (steps.empty()) {
    throw RunError(run + ": must have a checkpoint, has none yet (train it: elliptical resume " +
                   run + ")");
  }
  if (step < 0) return *run::newest_checkpoint(paths.checkpoints(), part, hooks.notice);
  if (std::find(steps.begin(), steps.end(), step) == steps.end()) {
    throw RunError(fmt::format("{}: --step must be one of its checkpoints, {}, got {}", run,
                               fmt::join(steps, ", "), step));
  }
  return run::read_checkpoint(paths.checkpoints() / checkpoint_name(step), part);
}

LoadedRun load_run(const std::filesystem::path& folder,
                   int64_t step,
                   const run::LoopHooks& hooks,
                   std::optional<run::Weights> weights) {
  LoadedRun loaded;
  loaded.paths = run::find_run(folder);
  run::read_config(loaded.paths, loaded.options);
  loaded.weights = weights.value_or(loaded.options.train.eval_weights);
  const bool average = loaded.weights == run::Weights::kAverage;
  if (average && loaded.options.train.ema_decay == 0) {
    throw RunError(folder.string() +
                   ": train.ema_decay must be above 0 for an average of its weights, is 0 (leave "
                   "out --weights ema, or train with --set train.ema_decay=0.9999)");
  }
  const auto part = average ? run::CheckpointPart::kAverage : run::CheckpointPart::kModel;
  const run::Checkpoint checkpoint = choose_checkpoint(loaded.paths, step, part, hooks);
  loaded.task = make_task(loaded.options, tasks::TaskUse::kMeasuring);
  run::copy_tensors(
      run::named_tensors(loaded.task->model()), average ? checkpoint.average : checkpoint.model,
      (checkpoint.folder / (average ? "ema.safetensors" : "model.safetensors")).string());
  require_finite(loaded.task->model(), checkpoint.folder, average);
  loaded.task->model().eval();
  loaded.step = checkpoint.state.step;
  return loaded;
}

run::Labels loaded_labels(const LoadedRun& loaded, measure::Source source) {
  run::Labels labels =
      run::run_labels(loaded.paths, loaded.options, *loaded.task, loaded.step, source);
  // Other weights than those that the run is measured by are another model.
  if (loaded.weights != loaded.options.train.eval_weights) {
    labels["weights"] = std::string(to_string(loaded.weights));
  }
  return labels;
}

std::vector<Record> evaluate_run(LoadedRun& loaded,
                                 const std::vector<std::string>& assignments,
                                 const run::LoopHooks& hooks,
                                 tasks::Dump* dump,
                                 const Told& told) {
  const std::unique_ptr<Options> eval_options = loaded.task->make_eval_options();
  apply_overrides(assignments, fields_of(*eval_options));
  const run::SignalGuard signals;
  hooks.describe(loaded.task->data_description());
  auto records = run::evaluate(*loaded.task, *eval_options,
                               loaded_labels(loaded, measure::Source::kEvaluation), hooks, dump);
  if (!records) {
    const int signal = run::stop_signal();
    throw Interrupted(loaded.paths.folder.string() + ": evaluation stopped by " +
                          run::signal_name(signal) + ", nothing was recorded",
                      signal);
  }
  tell_and_record(*records, told, [&] {
    RecordWriter writer(loaded.paths.records());
    for (const Record& record : *records) writer.append(record);
  });
  if (auto snapshot = loaded.task->snapshot(*eval_options)) {
    if (!snapshot->missing.empty()) hooks.say(snapshot->missing);
    snapshot->metadata["step"] = std::to_string(loaded.step);
    if (!snapshot->tensors.empty()) {
      run::replace_tensors(loaded.paths.snapshot(), snapshot->tensors, snapshot->metadata);
    }
  }
  return *records;
}

run::NamedTensors concatenated(const tasks::Dump& dump) {
  run::NamedTensors result;
  for (const auto& [name, pieces] : dump) result.emplace_back(name, at::cat(pieces));
  return result;
}

std::vector<Record> attack_run(LoadedRun& loaded,
                               const run::AttackPlan& plan,
                               const std::vector<std::string>& assignments,
                               const run::LoopHooks& hooks,
                               AttackDump* dump,
                               const Told& told) {
  const std::unique_ptr<Options> eval_options = loaded.task->make_eval_options();
  if (loaded.task->classifier() != nullptr) apply_overrides(assignments, fields_of(*eval_options));
  // Two at once would do the same work twice.
  std::optional<run::FileLock> lock;
  if (loaded.task->classifier() != nullptr) {
    lock.emplace(loaded.paths.attack_lock(), loaded.paths.folder);
  }
  const run::SignalGuard signals;
  std::vector<Record> records =
      run::evaluate_attacks({.task = *loaded.task,
                             .eval_options = *eval_options,
                             .plan = plan,
                             .labels = loaded_labels(loaded, measure::Source::kAttack),
                             .state = loaded.paths.attacks(),
                             .program = kProgram,
                             .hooks = hooks,
                             .dump = dump != nullptr ? &dump->tensors : nullptr,
                             .class_names = dump != nullptr ? &dump->class_names : nullptr,
                             .pictures = dump != nullptr ? "" : loaded.paths.attack_pictures()});
  tell_and_record(records, told, [&] {
    // Of an attack that had been finished before, every number is there.
    run::append_new_records(loaded.paths.records(), records);
  });
  return records;
}

namespace {

/// Data are described once, not before each validation.
run::LoopHooks without_data(run::LoopHooks hooks) {
  hooks.data = nullptr;
  return hooks;
}

}  // namespace

void start_run(const run::RunPaths& paths,
               const run::RunOptions& options,
               const run::LoopHooks& hooks) {
  run::check_new(paths);  // before the data are read, which may take a while
  const std::unique_ptr<tasks::Task> task = make_task(options, tasks::TaskUse::kNewRun);
  hooks.describe(task->data_description());
  for (const std::string& line : task->notices()) hooks.say(line);
  run::check_new_run(options, *task);
  run::require_data(options, *task);
  const run::RunLock lock = run::create_run_folder(paths);
  run::write_config(paths, run::config_text(options));
  run::train({.paths = paths,
              .options = &options,
              .task = task.get(),
              .program = kProgram,
              .hooks = without_data(hooks)});
}

void resume_run(const run::RunPaths& paths, const run::LoopHooks& hooks) {
  const run::RunLock lock(paths);
  run::RunOptions options;
  run::read_config(paths, options);
  // One that was stopped before its first checkpoint begins again.
  const bool is_new = run::checkpoint_steps(paths.checkpoints()).empty();
  const std::unique_ptr<tasks::Task> task =
      make_task(options, is_new ? tasks::TaskUse::kNewRun : tasks::TaskUse::kTraining);
  hooks.describe(task->data_description());
  for (const std::string& line : task->notices()) hooks.say(line);
  run::require_data(options, *task);
  run::train({.paths = paths,
              .options = &options,
              .task = task.get(),
              .program = kProgram,
              .hooks = without_data(hooks)});
}

namespace {

/// Of labels that are numbers; everything else of a record has all of them.
constexpr int kDigits = 6;

/// Parts of a measurement (one block of the text, one head of a layer) are for programs.
bool is_part(const Record& record) {
  return measure::is_block(record) || measure::is_of_head(record);
}

/// One row a record. For people, parts and labels that are the same in all rows are left out.
Table records_table(std::vector<Record> records, bool all_labels) {
  if (!all_labels) std::erase_if(records, is_part);
  std::map<std::string, std::set<std::string>> values;
  for (const Record& record : records) {
    for (const auto& [name, value] : record.labels)
      values[name].insert(measure::label_text(value, kDigits));
  }
  Table table{.columns = {"metric", "value", "count"}};
  std::vector<std::string> shown;
  for (const auto& [name, different] : values) {
    if (all_labels || different.size() > 1) shown.push_back(name);
  }
  table.columns.insert(table.columns.end(), shown.begin(), shown.end());
  for (const Record& record : records) {
    std::vector<std::string> row = {
        record.metric, fmt::format(fmt::runtime(all_labels ? "{}" : "{:.6g}"), record.value),
        std::to_string(record.count)};
    for (const std::string& name : shown) {
      const auto label = record.labels.find(name);
      row.push_back(label == record.labels.end() ? ""
                                                 : measure::label_text(label->second, kDigits));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

/// What the numbers are of and how they were measured, where that has a name: a perplexity without
/// its method says little.
std::string records_heading(const std::vector<Record>& records) {
  if (records.empty()) return "";
  const measure::Reading reading = measure::reading_of(records.front());
  const std::string text = measure::reading_text(reading);
  if (text.empty()) return "";
  return fmt::format("{} ({}), {}:", reading.data, measure::label_text(records.front(), "split"),
                     text);
}

}  // namespace

void warn_of_smoke(const run::RunOptions& options, const run::LoopHooks& hooks) {
  if (options.smoke.value_or(false)) hooks.say(report::kSmokeBanner);
}

void require_finite_records(const std::vector<Record>& records,
                            const std::filesystem::path& folder) {
  std::vector<std::string> broken;
  for (const Record& record : records) {
    if (is_part(record) || record.count == 0 || std::isfinite(record.value)) continue;
    const std::string text = fmt::format("{} is {}", record.metric, record.value);
    if (std::find(broken.begin(), broken.end(), text) == broken.end()) broken.push_back(text);
  }
  if (broken.empty()) return;
  throw RunError(folder.string() + ": what is measured must be finite, " + join(broken) +
                 " (recorded as it is; the training has diverged: train it again with a lower "
                 "optimizer.learning_rate or optimizer.clip_norm)");
}

void print_records(std::ostream& stream,
                   const std::vector<Record>& records,
                   const std::string& format) {
  if (format == "json") {
    stream << "[";
    for (size_t i = 0; i < records.size(); ++i) {
      stream << (i ? ",\n " : "\n ") << to_json_line(records[i]);
    }
    stream << "\n]\n";
  } else if (format == "csv") {
    print_csv(stream, records_table(records, true));
  } else {
    if (const std::string heading = records_heading(records); !heading.empty()) {
      stream << heading << "\n\n";
    }
    print_text(stream, records_table(records, false));
  }
}

}  // namespace elliptical::cli
