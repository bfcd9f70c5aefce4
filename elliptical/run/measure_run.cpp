// SPDX-License-Identifier: MIT
#include "elliptical/run/measure_run.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <memory>
#include <optional>

#include "elliptical/base/config.h"
#include "elliptical/base/errors.h"
#include "elliptical/base/names.h"
#include "elliptical/measure/labels.h"
#include "elliptical/run/attack_evaluation.h"
#include "elliptical/run/attack_records.h"
#include "elliptical/run/signals.h"

namespace elliptical::run {
namespace {

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

std::vector<Record> evaluate_run(const EvaluateRequest& request) {
  LoadedRun& run = request.run;
  const std::unique_ptr<Options> eval_options = run.task->make_eval_options();
  apply_overrides(request.assignments, fields_of(*eval_options));
  const SignalGuard signals;
  request.hooks.describe(run.task->data_description());
  auto records =
      evaluate(*run.task, *eval_options, loaded_labels(run, measure::Source::kEvaluation),
               request.hooks, request.dump);
  if (!records) {
    const int signal = stop_signal();
    throw Interrupted(run.paths.folder.string() + ": evaluation stopped by " + signal_name(signal) +
                          ", nothing was recorded",
                      signal);
  }
  tell_and_record(*records, request.told, [&] {
    RecordWriter writer(run.paths.records());
    for (const Record& record : *records) writer.append(record);
  });
  if (auto snapshot = run.task->snapshot(*eval_options)) {
    if (!snapshot->missing.empty()) request.hooks.say(snapshot->missing);
    snapshot->metadata["step"] = std::to_string(run.step);
    if (!snapshot->tensors.empty()) {
      store::replace_tensors(run.paths.snapshot(), snapshot->tensors, snapshot->metadata);
    }
  }
  return *records;
}

std::vector<Record> attack_run(const AttackRunRequest& request) {
  LoadedRun& run = request.run;
  AttackDump* const dump = request.dump;
  const std::unique_ptr<Options> eval_options = run.task->make_eval_options();
  std::optional<FileLock> lock;
  if (run.task->classifier() != nullptr) {  // else `evaluate_attacks` says what it lacks
    apply_overrides(request.assignments, fields_of(*eval_options));
    // Two at once would do the same work twice.
    lock.emplace(run.paths.attack_lock(), run.paths.folder);
  }
  const SignalGuard signals;
  std::vector<Record> records =
      evaluate_attacks({.task = *run.task,
                        .eval_options = *eval_options,
                        .plan = request.plan,
                        .labels = loaded_labels(run, measure::Source::kAttack),
                        .state = run.paths.attacks(),
                        .program = request.program,
                        .hooks = request.hooks,
                        .dump = dump != nullptr ? &dump->tensors : nullptr,
                        .class_names = dump != nullptr ? &dump->class_names : nullptr,
                        .pictures = dump != nullptr ? "" : run.paths.attack_pictures()});
  tell_and_record(records, request.told, [&] {
    // Of an attack that had been finished before, every number is there.
    append_new_records(run.paths.records(), records);
  });
  return records;
}

store::NamedTensors concatenated(const tasks::Dump& dump) {
  store::NamedTensors result;
  for (const auto& [name, pieces] : dump) result.emplace_back(name, at::cat(pieces));
  return result;
}

void require_finite_records(const std::vector<Record>& records, const fs::path& folder) {
  std::vector<std::string> broken;
  for (const Record& record : records) {
    if (measure::is_part(record) || record.count == 0 || std::isfinite(record.value)) continue;
    const std::string text = fmt::format("{} is {}", record.metric, record.value);
    if (std::find(broken.begin(), broken.end(), text) == broken.end()) broken.push_back(text);
  }
  if (broken.empty()) return;
  throw RunError(folder.string() + ": what is measured must be finite, " + join(broken) +
                 " (recorded as it is; the training has diverged: train it again with a lower "
                 "optimizer.learning_rate or optimizer.clip_norm)");
}

}  // namespace elliptical::run
