// SPDX-License-Identifier: MIT
#include "elliptical/cli/damage_arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "elliptical/tasks/task.h"

namespace elliptical::cli {
namespace {

using ParameterKind = measure::Parameter::Kind;

/// Of one task, kinds before strengths.
std::vector<measure::Parameter> declared_parameters(const measure::TaskMeasures& measures) {
  std::vector<measure::Parameter> all;
  for (const measure::Perturbation& perturbation : measures.perturbations) {
    for (const measure::Parameter& parameter : parameters_of(perturbation))
      all.push_back(parameter);
  }
  return all;
}

/// Of all tasks; a flag that several have stands once.
std::vector<measure::Parameter> all_parameters() {
  std::vector<measure::Parameter> all;
  for (const measure::TaskMeasures* measures : tasks::measure_table()) {
    for (const measure::Parameter& declared : declared_parameters(*measures)) {
      const std::string_view flag = declared.flag;
      const bool is_known = std::any_of(all.begin(), all.end(),
                                        [&](const auto& known) { return flag == known.flag; });
      if (!is_known) all.push_back(declared);
    }
  }
  return all;
}

}  // namespace

void add_damage(CLI::App& app, GivenDamage& given) {
  for (const measure::Parameter& parameter : all_parameters()) {
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
  for (const measure::Parameter& parameter : all_parameters()) {
    if (given.contains(parameter.flag)) {
      ordered.emplace_back(parameter.flag, given.at(parameter.flag));
    }
  }
  return ordered;
}

std::map<std::string, report::WantedDamage> wanted_damages(const GivenDamage& given) {
  std::map<std::string, report::WantedDamage> wanted;
  for (const measure::TaskMeasures* measures : tasks::measure_table()) {
    for (const measure::Perturbation& perturbation : measures->perturbations) {
      report::WantedDamage damage;
      if (perturbation.kind && given.contains(perturbation.kind->flag)) {
        damage.kind = given.at(perturbation.kind->flag);
      }
      if (given.contains(perturbation.strength.flag)) {
        damage.strength = std::stod(given.at(perturbation.strength.flag));
      }
      if (damage.kind || damage.strength) wanted[perturbation.name] = damage;
    }
  }
  return wanted;
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
    for (const measure::Parameter& parameter : declared_parameters(*measures)) {
      add({"--" + std::string(parameter.flag), parameter.option, parameter.eval_help});
    }
    if (!measures->methods.empty()) add({"--method", "method", measures->method_help});
  }
  return shorthands;
}

}  // namespace elliptical::cli
