// SPDX-License-Identifier: MIT
#include "elliptical/report/number_list.h"

#include <array>
#include <map>
#include <set>

#include "elliptical/base/config.h"
#include "elliptical/base/errors.h"
#include "elliptical/base/printable.h"
#include "elliptical/measure/labels.h"
#include "elliptical/measure/measurements.h"
#include "elliptical/measure/run_paths.h"
#include "elliptical/report/data_table.h"

namespace elliptical::report {
namespace {

using nlohmann::json;

const std::set<std::string> kInCharts = {
    "block_accuracy", "block_mce",        "block_nll",      "block_robust_accuracy",
    "class_accuracy", "metric_head_mean", "metric_profile", "metric_head_anisotropy"};

/// A label that is an option of `elliptical eval`, unless it has the value that it has anyway.
struct EvalOption {
  const char* label;
  const char* option;
  const char* usual;
};
constexpr std::array kEvalOptions = {
    EvalOption{"columns", "columns", "10"},
    EvalOption{"profile", "swap_profile", "strict"},
    EvalOption{"stride", "stride", "1"},
    EvalOption{"swap_seed", "swap_seed", "1"},
    EvalOption{"swap_unit", "swap_unit", "line"},
    EvalOption{"corruption_seed", "corruption_seed", "1"},
    EvalOption{"corruption_jpeg", "corruption_jpeg", "false"},
    EvalOption{"max_pictures", "max_pictures", "0"},
};
/// The same, compared with what the run was trained with.
constexpr std::array kTrainedOptions = {
    EvalOption{"metric_scope", "metric_scope", "task.model.attention.metric.scope"},
    EvalOption{"window", "window", "task.model.window"},
    EvalOption{"data", "data", "task.data.name"},
};

std::map<std::string, std::string> config_values(const RunData& run) {
  try {
    return recipe_values(run.config, measure::RunPaths{run.folder}.config());
  } catch (const ConfigError&) {  // such a run is not in a collection
    return {};
  }
}

}  // namespace

std::string command_of(const Record& record, const RunData& run) {
  const std::string folder = shell_word(run.folder.string());
  if (measure::source_of(record) == measure::Source::kTraining) {
    return "elliptical train " + shell_word((measure::RunPaths{run.folder}.config()).string()) +
           " --run NEW_FOLDER";
  }
  if (const measure::Circumstances circumstances = measure::circumstances_of(record);
      circumstances.condition == measure::Condition::kAttacked) {
    const std::string weights = measure::label_text(record, "weights");
    return measure::measuring_command(circumstances, run.folder.string()) +
           (weights.empty() ? "" : " --weights " + weights) + " --step " +
           std::to_string(measure::whole_label(record, "step").value_or(0));
  }
  const auto value = [&](const char* name) { return measure::label_text(record, name); };
  std::string command = "elliptical eval " + folder;
  const auto add = [&](const std::string& flag, const std::string& text) {
    if (!text.empty()) command += " " + flag + shell_word(text);
  };
  add("--split ", value("split"));
  const std::string perturbation = value("perturbation");
  if (perturbation == "word_swap") add("--swap ", value("swap_rate"));
  if (perturbation == "corruption") {
    add("--corrupt ", value("corruption"));
    add("--severity ", value("severity"));
  }
  add("--weights ", value("weights"));
  add("--method ", value("method") == "block" ? "" : value("method"));
  for (const EvalOption& option : kEvalOptions) {
    const std::string text = value(option.label);
    if (!text.empty() && text != option.usual) add("--set ", option.option + ("=" + text));
  }
  const auto trained = config_values(run);
  for (const EvalOption& option : kTrainedOptions) {
    const auto usual = trained.find(option.usual);
    const std::string text = value(option.label);
    // Of text nothing but what was trained on is read, whatever records call it.
    if (option.label == std::string("data") && value("task") != "classify_image") continue;
    if (text.empty() || usual == trained.end() || usual->second == text) continue;
    add("--set ", option.option + ("=" + text));
  }
  add("--step ", value("step"));
  return command;
}

NumberList list_numbers(const std::vector<RunData>& runs) {
  NumberList list;
  for (size_t i = 0; i < runs.size(); ++i) {
    int64_t last_training = -1;
    for (const Record& record : runs[i].records) {
      if (measure::source_of(record) == measure::Source::kTraining) {
        last_training = std::max(last_training, measure::whole_label(record, "step").value_or(0));
      }
    }
    for (const Record& record : runs[i].records) {
      if (kInCharts.contains(record.metric)) continue;
      const bool training = measure::source_of(record) == measure::Source::kTraining;
      if (training && measure::whole_label(record, "step").value_or(0) != last_training) continue;
      ++list.num_all;
      if (list.rows.size() == kMaxNumbers) continue;
      std::string what = measure::label_text(record, "split");
      if (const std::string method = measure::label_text(record, "method"); !method.empty()) {
        what += ", method " + method;
      }
      if (const auto perturbation = measure::text_label(record, "perturbation");
          perturbation && *perturbation != "none") {
        what += ", " + *perturbation;
        for (const char* name : {"swap_rate", "corruption", "severity"}) {
          if (record.labels.contains(name)) what += " " + measure::label_text(record, name);
        }
      }
      if (training) what += ", while training";
      list.rows.push_back({{"run", i},
                           {"metric", record.metric},
                           {"text", number_text(record.value, 5)},
                           {"count", record.count},
                           {"what", what},
                           {"command", command_of(record, runs[i])},
                           {"record", to_json_line(record)}});
    }
  }
  return list;
}

}  // namespace elliptical::report
