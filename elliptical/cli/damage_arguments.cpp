// SPDX-License-Identifier: MIT
#include "elliptical/cli/damage_arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "elliptical/tasks/task.h"

namespace elliptical::cli {
namespace {

using Kind = measure::Parameter::Kind;

std::string flag_of(const measure::Parameter& parameter) {
  return "--" + std::string(parameter.flag);
}

/// Calls `f(parameter, whether it is a strength)`, once for each flag.
template <class F>
void for_each_parameter(const measure::TaskMeasures& measures, F f) {
  for (const measure::Perturbation& perturbation : measures.perturbations) {
    if (perturbation.kind) f(*perturbation.kind, false);
    f(perturbation.strength, true);
  }
}

}  // namespace

double DamageArguments::Argument::value() const {
  return parameter->kind == Kind::kNumber ? number : whole;
}

std::string DamageArguments::Argument::value_text() const {
  return parameter->kind == Kind::kText ? text : fmt::format("{}", value());
}

bool DamageArguments::Argument::is_off() const {
  if (parameter->off == nullptr) return false;
  return parameter->kind == Kind::kText ? text == parameter->off
                                        : value() == std::stod(parameter->off);
}

DamageArguments::DamageArguments() {
  for (const measure::TaskMeasures* measures : tasks::measure_table()) {
    for_each_parameter(*measures, [&](const measure::Parameter& parameter, bool is_strength) {
      const bool is_known =
          std::any_of(arguments_.begin(), arguments_.end(), [&](const Argument& argument) {
            return std::string_view(argument.parameter->flag) == parameter.flag;
          });
      if (is_known) return;
      Argument argument{.parameter = &parameter, .is_strength = is_strength};
      if (parameter.kind == Kind::kText) argument.text = parameter.usual;
      if (parameter.kind == Kind::kNumber) argument.number = std::stod(parameter.usual);
      if (parameter.kind == Kind::kWhole) argument.whole = std::stoi(parameter.usual);
      arguments_.push_back(argument);
    });
  }
}

void DamageArguments::add_to(CLI::App& app) {
  for (Argument& argument : arguments_) {
    const measure::Parameter& parameter = *argument.parameter;
    const std::string flag = flag_of(parameter);
    if (parameter.kind == Kind::kText) {
      app.add_option(flag, argument.text, parameter.help);
    } else if (parameter.kind == Kind::kNumber) {
      app.add_option(flag, argument.number, parameter.help)
          ->check(CLI::Range(parameter.low, parameter.high));
    } else {
      app.add_option(flag, argument.whole, parameter.help)
          ->check(CLI::Range(static_cast<int>(parameter.low), static_cast<int>(parameter.high)));
    }
  }
}

const DamageArguments::Argument& DamageArguments::find(const measure::Parameter& parameter) const {
  return *std::find_if(arguments_.begin(), arguments_.end(), [&](const Argument& argument) {
    return std::string_view(argument.parameter->flag) == parameter.flag;
  });
}

DamageChoice DamageArguments::choice_of(const measure::Perturbation& perturbation) const {
  DamageChoice choice;
  for (const measure::Parameter& parameter : measure::parameters_of(perturbation)) {
    const Argument& argument = find(parameter);
    choice.is_off |= argument.is_off();
    choice.assignments.push_back(std::string(parameter.option) + "=" + argument.value_text());
  }
  choice.strength = find(perturbation.strength).value();
  if (perturbation.kind) choice.kind = find(*perturbation.kind).text;
  return choice;
}

std::optional<double> DamageArguments::given_strength(const CLI::App& app) const {
  std::optional<double> strength;
  for (const Argument& argument : arguments_) {
    if (argument.is_strength && app.count(flag_of(*argument.parameter)) > 0) {
      strength = argument.value();
    }
  }
  return strength;
}

void add_method(CLI::App& app, std::string& method) {
  std::vector<std::string> names;
  const char* help = "";
  for (const measure::TaskMeasures* measures : tasks::measure_table()) {
    names.insert(names.end(), measures->methods.begin(), measures->methods.end());
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
    for_each_parameter(*measures, [&](const measure::Parameter& parameter, bool) {
      add({flag_of(parameter), parameter.option, parameter.eval_help});
    });
    if (!measures->methods.empty()) add({"--method", "method", measures->method_help});
  }
  return shorthands;
}

}  // namespace elliptical::cli
