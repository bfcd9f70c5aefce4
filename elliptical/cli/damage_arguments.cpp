// SPDX-License-Identifier: MIT
#include "elliptical/cli/damage_arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "elliptical/tasks/task.h"

namespace elliptical::cli {
namespace {

using ParameterKind = measure::Parameter::Kind;

struct DeclaredParameter {
  measure::Parameter parameter;
  bool is_strength;
};

/// Of one task, kinds before strengths.
std::vector<DeclaredParameter> declared_parameters(const measure::TaskMeasures& measures) {
  std::vector<DeclaredParameter> parameters;
  for (const measure::Perturbation& perturbation : measures.perturbations) {
    if (perturbation.kind) parameters.push_back({*perturbation.kind, false});
    parameters.push_back({perturbation.strength, true});
  }
  return parameters;
}

/// Of all tasks; a flag that several have stands once.
std::vector<DeclaredParameter> all_parameters() {
  std::vector<DeclaredParameter> all;
  for (const measure::TaskMeasures* measures : tasks::measure_table()) {
    for (const DeclaredParameter& declared : declared_parameters(*measures)) {
      const std::string_view flag = declared.parameter.flag;
      const bool is_known =
          std::any_of(all.begin(), all.end(),
                      [&](const DeclaredParameter& known) { return flag == known.parameter.flag; });
      if (!is_known) all.push_back(declared);
    }
  }
  return all;
}

std::string value_of(const measure::Parameter& parameter, const GivenDamage& given) {
  const auto found = given.find(parameter.flag);
  return found == given.end() ? parameter.usual : found->second;
}

bool is_turned_off(const measure::Parameter& parameter, const std::string& value) {
  if (parameter.off == nullptr) return false;
  return parameter.kind == ParameterKind::kText ? value == parameter.off
                                                : std::stod(value) == std::stod(parameter.off);
}

}  // namespace

DamageChoice choice_of(const measure::Perturbation& perturbation, const GivenDamage& given) {
  DamageChoice choice;
  for (const measure::Parameter& parameter : measure::parameters_of(perturbation)) {
    const std::string value = value_of(parameter, given);
    choice.is_off |= is_turned_off(parameter, value);
    choice.assignments.push_back(std::string(parameter.option) + "=" + value);
  }
  choice.strength = std::stod(value_of(perturbation.strength, given));
  if (perturbation.kind) choice.kind = value_of(*perturbation.kind, given);
  return choice;
}

void add_damage(CLI::App& app, GivenDamage& given) {
  for (const auto& [parameter, is_strength] : all_parameters()) {
    const std::string name = parameter.flag, flag = "--" + name;
    const auto take = [&given, name](const auto& value) { given[name] = fmt::format("{}", value); };
    if (parameter.kind == ParameterKind::kText) {
      app.add_option_function<std::string>(flag, take, parameter.help);
    } else if (parameter.kind == ParameterKind::kNumber) {
      app.add_option_function<double>(flag, take, parameter.help)
          ->check(CLI::Range(parameter.low, parameter.high));
    } else {
      app.add_option_function<int>(flag, take, parameter.help)
          ->check(CLI::Range(static_cast<int>(parameter.low), static_cast<int>(parameter.high)));
    }
  }
}

std::vector<std::pair<std::string, std::string>> given_damage(const GivenDamage& given) {
  std::vector<std::pair<std::string, std::string>> ordered;
  for (const auto& [parameter, is_strength] : all_parameters()) {
    if (given.contains(parameter.flag)) {
      ordered.emplace_back(parameter.flag, given.at(parameter.flag));
    }
  }
  return ordered;
}

std::optional<double> given_strength(const GivenDamage& given) {
  std::optional<double> strength;
  for (const auto& [parameter, is_strength] : all_parameters()) {
    const auto found = given.find(parameter.flag);
    if (is_strength && found != given.end()) strength = std::stod(found->second);
  }
  return strength;
}

void add_method(CLI::App& app, std::optional<std::string>& method) {
  std::vector<std::string> names;
  const char* help = "";
  for (const measure::TaskMeasures* measures : tasks::measure_table()) {
    for (const char* name : measures->methods) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.emplace_back(name);
    }
    if (!measures->methods.empty()) help = measures->method_help;
  }
  app.add_option("--method", method, help)->check(one_of(names));
}

std::vector<Shorthand> eval_shorthands() {
  std::vector<Shorthand> shorthands = {
      {"--split", "split", "part of the data: train, valid, test"}};
  const auto add = [&](const Shorthand& added) {
    const bool is_known =
        std::any_of(shorthands.begin(), shorthands.end(),
                    [&](const Shorthand& shorthand) { return shorthand.flag == added.flag; });
    if (!is_known) shorthands.push_back(added);
  };
  for (const measure::TaskMeasures* measures : tasks::measure_table()) {
    for (const auto& [parameter, is_strength] : declared_parameters(*measures)) {
      add({"--" + std::string(parameter.flag), parameter.option, parameter.eval_help});
    }
    if (!measures->methods.empty()) add({"--method", "method", measures->method_help});
  }
  return shorthands;
}

}  // namespace elliptical::cli
