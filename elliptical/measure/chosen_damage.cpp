// SPDX-License-Identifier: MIT
#include "elliptical/measure/chosen_damage.h"

#include <algorithm>

namespace elliptical::measure {
namespace {

std::string value_of(const Parameter& parameter, const GivenDamage& given) {
  const auto found = given.find(parameter.flag);
  return found == given.end() ? parameter.usual : found->second;
}

bool is_turned_off(const Parameter& parameter, const std::string& value) {
  if (parameter.off == nullptr) return false;
  return parameter.kind == Parameter::Kind::kText ? value == parameter.off
                                                  : std::stod(value) == std::stod(parameter.off);
}

}  // namespace

std::optional<ChosenDamage> chosen_damage(const Perturbation& perturbation,
                                          const GivenDamage& given) {
  ChosenDamage chosen{.perturbation = perturbation.name};
  for (const Parameter& parameter : parameters_of(perturbation)) {
    const std::string value = value_of(parameter, given);
    if (is_turned_off(parameter, value)) return std::nullopt;
    chosen.assignments.push_back(std::string(parameter.option) + "=" + value);
  }
  chosen.strength = std::stod(value_of(perturbation.strength, given));
  if (perturbation.kind) chosen.kind = value_of(*perturbation.kind, given);
  return chosen;
}

std::vector<ChosenDamage> chosen_damages(const TaskMeasures& measures, const GivenDamage& given) {
  std::vector<ChosenDamage> all;
  for (const Perturbation& perturbation : measures.perturbations) {
    const std::vector<Parameter> parameters = parameters_of(perturbation);
    const bool is_asked =
        &perturbation == measures.usual_perturbation() ||
        std::any_of(parameters.begin(), parameters.end(),
                    [&](const Parameter& parameter) { return given.contains(parameter.flag); });
    if (!is_asked) continue;
    if (auto chosen = chosen_damage(perturbation, given)) all.push_back(std::move(*chosen));
  }
  return all;
}

}  // namespace elliptical::measure
