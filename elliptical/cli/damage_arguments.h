// SPDX-License-Identifier: MIT
//
// Flags of `compare` and `eval` that the tasks declare (measure/task_measures.h): what is done to
// the data, and how they are read.
#pragma once

#include <list>
#include <optional>
#include <string>
#include <vector>

#include "elliptical/cli/arguments.h"
#include "elliptical/measure/task_measures.h"

namespace elliptical::cli {

/// A perturbation as it was asked for.
struct DamageChoice {
  bool is_off = false;  ///< only undamaged data are measured
  double strength = 0;
  std::string kind;
  std::vector<std::string> assignments;  ///< of options of the evaluation: "severity=3"
};

/// How `compare` damages data: a flag for each parameter of each perturbation, with its usual
/// value.
class DamageArguments {
 public:
  DamageArguments();
  void add_to(CLI::App& app);
  DamageChoice choice_of(const measure::Perturbation& perturbation) const;
  /// The strength on the command line; nothing where none stands there.
  std::optional<double> given_strength(const CLI::App& app) const;

 private:
  struct Argument {
    const measure::Parameter* parameter;
    bool is_strength;
    double number = 0;  ///< of Parameter::Kind::kNumber
    int whole = 0;
    std::string text;
    double value() const;
    std::string value_text() const;
    bool is_off() const;
  };
  const Argument& find(const measure::Parameter& parameter) const;

  std::list<Argument> arguments_;  ///< the parser keeps their addresses
};

/// `--method`: how data are read, where tasks have several ways.
void add_method(CLI::App& app, std::string& method);

/// A flag that stands for an option of evaluations: `--split test` is `--set split=test`.
struct Shorthand {
  std::string flag, key, help, value = {};
};
/// `--split`, and those that the tasks declare.
std::vector<Shorthand> eval_shorthands();

}  // namespace elliptical::cli
