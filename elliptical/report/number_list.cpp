// SPDX-License-Identifier: MIT
#include "elliptical/report/number_list.h"

#include <algorithm>
#include <map>

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

/// Numbers of parts: of single blocks, heads and classes.
bool is_of_part(const Record& record) {
  return measure::is_block(record) || measure::is_of_head(record) || measure::is_of_class(record);
}

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
  if (const auto circumstances = measure::circumstances_of(record, *run.measures);
      circumstances && circumstances->condition == measure::Condition::kAttacked) {
    const std::string weights = measure::label_text(record, "weights");
    return measure::measuring_command(*circumstances, *run.measures, run.folder.string()) +
           (weights.empty() ? "" : " --weights " + weights) + " --step " +
           std::to_string(measure::whole_label(record, "step").value_or(0));
  }
  const auto value = [&](const char* name) { return measure::label_text(record, name); };
  std::string command = "elliptical eval " + folder;
  const auto add = [&](const std::string& flag, const std::string& text) {
    if (!text.empty()) command += " " + flag + shell_word(text);
  };
  add("--split ", value("split"));
  const auto* damage = run.measures->find_perturbation(value("perturbation"));
  if (damage != nullptr) {
    for (const measure::Parameter& parameter : parameters_of(*damage)) {
      add("--" + std::string(parameter.flag) + " ", value(parameter.label));
    }
  }
  add("--weights ", value("weights"));
  add("--method ", value("method") == "block" ? "" : value("method"));
  for (const measure::EvalOption& option : run.measures->options) {
    const std::string text = value(option.label);
    if (!text.empty() && text != option.usual) add("--set ", option.option + ("=" + text));
  }
  const auto trained = config_values(run);
  for (const measure::EvalOption& option : run.measures->trained_options) {
    const auto usual = trained.find(option.usual);
    const std::string text = value(option.label);
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
      if (is_of_part(record)) continue;
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
        if (const auto* damage = runs[i].measures->find_perturbation(*perturbation)) {
          for (const measure::Parameter& parameter : parameters_of(*damage)) {
            const std::string text = measure::label_text(record, parameter.label);
            if (!text.empty()) what += " " + text;
          }
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
