// SPDX-License-Identifier: MIT
//
// What a comparison has to do: the planned runs, and how each is measured and attacked, as the task
// of its recipes declares it (measure/task_measures.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "elliptical/measure/chosen_damage.h"
#include "elliptical/run/attack_plan.h"
#include "elliptical/run/comparison_plan.h"

namespace elliptical::run {

/// A comparison as it is asked for. What is absent was not: the usual is done.
struct WorkRequest {
  std::vector<RecipeRequest> recipes;
  std::filesystem::path folder;              ///< of all runs
  std::string seeds = "3";                   ///< as parse_seeds reads them
  std::string controls = "all";              ///< as parse_controls reads them
  std::optional<std::string> split, method;  ///< of the data; how they are read
  std::optional<std::string> attacks, eps;   ///< as make_attack_plan reads them
  measure::GivenDamage damage = {};          ///< by the flags that tasks declare
  std::optional<int64_t> num_pictures = {};  ///< damaged and attacked ones; 0: all
  int num_jobs = 1;
  int num_threads = 0;  ///< of all jobs together; 0: all cores
};

/// What is measured unless something else is asked for.
inline constexpr const char *kUsualSplit = "test", *kUsualEps = "1/255";

struct ComparisonWork {
  std::vector<PlannedRun> plan;
  std::string split = kUsualSplit;
  std::string method;          ///< of reading the data; empty where there is only one
  int64_t num_eval_units = 0;  ///< of that split, where they must be known to tell the cost
  std::vector<measure::ChosenDamage> damages;  ///< measured one by one, beside clean data
  AttackPlan attacks;                          ///< strict, through the metric; no cases: none
  int64_t num_pictures = 0;                    ///< damaged and attacked ones: only so many; 0: all
  int num_jobs = 1;
  int num_threads = 0;  ///< of all jobs together; 0: all cores
};

/// Reads the recipes and plans their comparison. Throws UsageError for what the task of the recipes
/// can not do, ConfigError as plan_comparison.
ComparisonWork plan_work(const WorkRequest& request);

}  // namespace elliptical::run
