// SPDX-License-Identifier: MIT
#include "elliptical/report/run_data.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <tuple>

#include "elliptical/base/config.h"
#include "elliptical/base/errors.h"
#include "elliptical/base/files.h"
#include "elliptical/measure/labels.h"
#include "elliptical/measure/run_paths.h"

namespace elliptical::report {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxDepth = 4;

std::optional<int64_t> whole_number(const std::string& text) {
  int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, number);
  if (result.ec != std::errc() || result.ptr != end) return std::nullopt;
  return number;
}

/// Fills what config.toml says; the text of the problem, or "".
std::string read_config(RunData& run) {
  const fs::path file = measure::RunPaths{run.folder}.config();
  const std::string advice = " (left out; move the folder away if it is no run of this program)";
  std::map<std::string, std::string> values;
  try {
    run.config = read_file(file, measure::kMaxConfigBytes);
    values = recipe_values(run.config, file);
  } catch (const std::runtime_error& error) {  // DataError, ConfigError
    return error.what() + advice;
  }
  const auto seed = whole_number(values["seed"]);
  run.task = values["task.name"];
  if (!seed || run.task.empty()) {
    return file.string() + ": must have seed and task.name, has not" + advice;
  }
  run.seed = *seed;
  run.name = values["name"];
  if (run.name.empty()) run.name = values["task.model.attention.name"];
  if (run.name.empty()) run.name = measure::RunPaths{run.folder}.name();
  return "";
}

std::vector<Record> read_usable(const fs::path& file, std::vector<std::string>& problems) {
  std::string first;
  int64_t num_damaged = 0;
  const auto damaged = [&](const std::string& what) {
    if (num_damaged++ == 0) first = what;
  };
  std::vector<Record> records;
  try {
    records = read_records(file, damaged);
  } catch (const DataError& error) {
    problems.emplace_back(error.what());
  }
  if (num_damaged > 0) {
    problems.push_back(first + " (" + std::to_string(num_damaged) + " damaged line" +
                       (num_damaged > 1 ? "s" : "") +
                       " left out, the others are used; measure again: elliptical eval " +
                       file.parent_path().string() + ")");
  }
  return records;
}

void add_run(const fs::path& folder, RunCollection& collection) {
  RunData run{.folder = folder};
  if (const std::string problem = read_config(run); !problem.empty()) {
    collection.problems.push_back(problem);
    return;
  }
  std::error_code ignored;
  const measure::RunPaths paths{folder};
  if (!fs::exists(paths.records(), ignored)) {
    collection.problems.push_back(paths.records().string() +
                                  ": is missing, nothing was measured yet (elliptical resume " +
                                  folder.string() + ")");
  }
  run.records = read_usable(paths.records(), collection.problems);
  run.log = read_usable(paths.log(), collection.problems);
  if (fs::exists(paths.snapshot(), ignored)) run.snapshot = paths.snapshot();
  if (fs::exists(paths.attack_pictures(), ignored)) {
    run.attack_pictures = paths.attack_pictures();
  }
  collection.runs.push_back(std::move(run));
}

/// Whether there was a run, usable or not.
bool search(const fs::path& folder, int depth, RunCollection& collection) {
  std::error_code error;
  if (fs::exists(measure::RunPaths{folder}.config(), error)) {
    add_run(folder, collection);
    return true;
  }
  if (depth == kMaxDepth) return false;
  std::vector<fs::path> inner;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    if (it->is_directory(ignored)) inner.push_back(it->path());
  }
  if (error) {
    collection.problems.push_back(folder.string() + ": can not be listed: " + error.message() +
                                  " (left out)");
  }
  std::sort(inner.begin(), inner.end());
  bool found = false;
  for (const fs::path& path : inner) found |= search(path, depth + 1, collection);
  return found;
}

}  // namespace

RunCollection read_runs(const std::vector<fs::path>& folders, const measure::MeasureTable& tasks) {
  RunCollection collection;
  for (const fs::path& folder : folders) {
    std::error_code ignored;
    std::string problem;
    if (!fs::is_directory(folder, ignored)) {
      problem = folder.string() + ": must be a folder with runs, there is no such folder";
    } else if (!search(folder, 0, collection)) {
      problem =
          folder.string() +
          ": must be a folder with runs, has none (train one: elliptical train RECIPE --run " +
          (folder / "NAME").string() + ")";
    }
    if (problem.empty()) continue;
    collection.problems.push_back(problem);
    collection.folders_without_runs.push_back(problem);
  }
  for (RunData& run : collection.runs) run.measures = &measure::find_measures(tasks, run.task);
  std::sort(collection.runs.begin(), collection.runs.end(), [](const RunData& a, const RunData& b) {
    return std::tie(a.name, a.seed, a.folder) < std::tie(b.name, b.seed, b.folder);
  });
  return collection;
}

measure::CommandTarget command_target(const RunData& run) {
  measure::CommandTarget target{.folder = run.folder.string()};
  try {
    target.trained = recipe_values(run.config, measure::RunPaths{run.folder}.config());
  } catch (const ConfigError&) {  // such a run is not in a collection
  }
  return target;
}

bool is_smoke(const RunData& run) {
  const auto says_so = [](const Record& record) {
    return measure::flag_label(record, "smoke").value_or(false);
  };
  if (std::any_of(run.records.begin(), run.records.end(), says_so)) return true;
  const auto values = recipe_values(run.config, run.folder);
  const auto found = values.find("smoke");
  return found != values.end() && found->second == "true";
}

}  // namespace elliptical::report
