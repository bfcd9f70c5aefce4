// SPDX-License-Identifier: MIT
#include "elliptical/measure/task_measures.h"

#include <algorithm>

namespace elliptical::measure {

std::vector<Parameter> parameters_of(const Perturbation& perturbation) {
  std::vector<Parameter> parameters;
  if (perturbation.kind) parameters.push_back(*perturbation.kind);
  parameters.push_back(perturbation.strength);
  return parameters;
}

const Measure& TaskMeasures::main() const {
  static constexpr Measure kNothing{.name = "", .unit = ""};
  return numbers.empty() ? kNothing : *numbers.front().measure;
}

const Perturbation* TaskMeasures::find_perturbation(std::string_view name) const {
  const auto found = std::find_if(perturbations.begin(), perturbations.end(),
                                  [&](const Perturbation& each) { return each.name == name; });
  return found == perturbations.end() ? nullptr : &*found;
}

const TaskMeasures& find_measures(const MeasureTable& table, std::string_view task) {
  const auto found = std::find_if(table.begin(), table.end(),
                                  [&](const TaskMeasures* each) { return each->task == task; });
  return found == table.end() ? kNoMeasures : **found;
}

}  // namespace elliptical::measure
