// SPDX-License-Identifier: MIT
#include "elliptical/report/number_list.h"

#include <algorithm>

#include "elliptical/base/printable.h"
#include "elliptical/measure/labels.h"
#include "elliptical/measure/measuring_command.h"
#include "elliptical/measure/run_paths.h"
#include "elliptical/report/data_table.h"

namespace elliptical::report {

std::string command_of(const Record& record, const RunData& run) {
  if (measure::source_of(record) == measure::Source::kTraining) {
    return "elliptical train " + shell_word((measure::RunPaths{run.folder}.config()).string()) +
           " --run NEW_FOLDER";
  }
  return measure::measuring_command(record, *run.measures, command_target(run));
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
      if (measure::is_part(record)) continue;
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
