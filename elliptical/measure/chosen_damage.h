// SPDX-License-Identifier: MIT
//
// What a comparison does to the data of its runs: perturbations of their task, chosen by the flags
// that the task declares (task_measures.h).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "elliptical/measure/task_measures.h"

namespace elliptical::measure {

/// The flags that were given, without dashes, and their values: "corrupt" -> "none".
using GivenDamage = std::map<std::string, std::string>;

/// A perturbation as it is done: of which kind, how much.
struct ChosenDamage {
  std::string perturbation;
  std::string kind = {};  ///< where it has several
  double strength = 0;
  std::vector<std::string> assignments = {};  ///< of options of the evaluation: "severity=3"
};

/// With what is usual where nothing was said; nothing where it is turned off.
std::optional<ChosenDamage> chosen_damage(const Perturbation& perturbation,
                                          const GivenDamage& given);

/// The first perturbation of the task unless it is turned off, and others that a flag asks for.
std::vector<ChosenDamage> chosen_damages(const TaskMeasures& measures, const GivenDamage& given);

}  // namespace elliptical::measure
