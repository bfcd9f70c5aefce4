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
#include "elliptical/measure/chosen_damage.h"
#include "elliptical/report/comparison.h"

namespace elliptical::cli {

using measure::GivenDamage;

/// A flag of `compare` for each parameter of each perturbation.
void add_damage(CLI::App& app, GivenDamage& given);

/// The given flags in the order of the tasks.
std::vector<std::pair<std::string, std::string>> given_damage(const GivenDamage& given);

/// What the flags ask of a table of what was measured already.
std::map<std::string, report::WantedDamage> wanted_damages(const GivenDamage& given);

/// `--method`: how data are read, where tasks have several ways.
void add_method(CLI::App& app, std::optional<std::string>& method);

/// A flag that stands for an option of evaluations: `--split test` is `--set split=test`.
struct Shorthand {
  std::string flag, key, help, value = {};
};
/// `--split`, and those that the tasks declare.
std::vector<Shorthand> eval_shorthands();

}  // namespace elliptical::cli
