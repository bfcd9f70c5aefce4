// SPDX-License-Identifier: MIT
//
// Flags of `compare` and `eval` that the tasks declare (measure/task_measures.h): what is done to the
// data, and how they are read.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "elliptical/cli/arguments.h"
#include "elliptical/measure/task_measures.h"

namespace elliptical::cli {

/// The flags that were given, without dashes, and their values.
using GivenDamage = std::map<std::string, std::string>;

/// A perturbation as it was asked for, with what is usual where nothing was said.
struct DamageChoice {
  bool is_off = false;  ///< only undamaged data are measured
  double strength = 0;
  std::string kind;
  std::vector<std::string> assignments;  ///< of options of the evaluation: "severity=3"
};
DamageChoice choice_of(const measure::Perturbation& perturbation, const GivenDamage& given);

/// A flag of `compare` for each parameter of each perturbation.
void add_damage(CLI::App& app, GivenDamage& given);

/// The given flags in the order of the tasks.
std::vector<std::pair<std::string, std::string>> given_damage(const GivenDamage& given);

/// The strength that was given; nothing where none was.
std::optional<double> given_strength(const GivenDamage& given);

/// `--method`: how data are read, where tasks have several ways.
void add_method(CLI::App& app, std::optional<std::string>& method);

/// A flag that stands for an option of evaluations: `--split test` is `--set split=test`.
struct Shorthand {
  std::string flag, key, help, value = {};
};
/// `--split`, and those that the tasks declare.
std::vector<Shorthand> eval_shorthands();

}  // namespace elliptical::cli
