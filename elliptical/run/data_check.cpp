// SPDX-License-Identifier: MIT
#include "elliptical/run/data_check.h"

#include <torch/torch.h>

#include <algorithm>

#include "elliptical/base/config.h"
#include "elliptical/base/effective_config.h"
#include "elliptical/base/errors.h"

namespace elliptical::run {
namespace {

/// "name: CHECKSUM, was CHECKSUM" for each piece of data that is not what it was.
std::vector<std::string> data_differences(const std::map<std::string, std::string>& now,
                                          const std::map<std::string, std::string>& before) {
  std::vector<std::string> result, added;
  for (const auto& [name, checksum] : now) {
    const auto found = before.find(name);
    if (found == before.end())
      added.push_back(name + ": is new");
    else if (found->second != checksum)
      result.push_back(name + ": " + checksum + ", was " + found->second);
  }
  for (const auto& [name, checksum] : before) {
    if (!now.contains(name)) result.push_back(name + ": is gone");
  }
  // Alone, a checksum that the checkpoint does not have is one that an older program did not take.
  if (!result.empty()) result.insert(result.begin(), added.begin(), added.end());
  return result;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += (text.empty() ? "" : "; ") + line;
  return text;
}

bool has_splits(Options& options) {
  const std::vector<FieldText> fields = describe(fields_of(options));
  return std::any_of(fields.begin(), fields.end(),
                     [](const FieldText& field) { return field.key == "split"; });
}

}  // namespace

void require_data(const RunOptions& options, tasks::Task& task) {
  if (options.train.steps == 0) return;
  task.num_train_units();  // throws where there is nothing to read
  const std::unique_ptr<Options> usual = task.make_eval_options();
  std::vector<std::vector<std::string>> assignments = {{}};
  if (has_splits(*usual)) assignments = {{"split=valid"}, {"split=test"}};
  for (const std::vector<std::string>& each : assignments) {
    const std::unique_ptr<Options> chosen = usual->clone();
    apply_overrides(each, fields_of(*chosen));
    if (task.eval_set(*chosen)->size() > 0) continue;
    throw DataError("data: " + (each.empty() ? "" : each.front() + " ") +
                    "must have at least one batch to measure, has none (add data to it)");
  }
}

void require_unchanged(const RunPaths& paths,
                       const RunOptions& options,
                       const tasks::Task& task,
                       const CheckpointState& before) {
  RunOptions now = options, then = options;
  read_effective_text(before.config, paths.checkpoints() / "state.json", fields_of(then));
  std::vector<std::string> changes = differences(fields_of(now), fields_of(then));
  for (const std::string& line : data_differences(task.data_fingerprint(), before.data)) {
    changes.push_back("data " + line);
  }
  if (changes.empty()) return;
  throw RunError(
      paths.folder.string() +
      ": configuration and data must be those of the checkpoint, changed: " + joined(changes) +
      " (put them back, or: elliptical fork " + paths.folder.string() + " --run DIR)");
}

}  // namespace elliptical::run
