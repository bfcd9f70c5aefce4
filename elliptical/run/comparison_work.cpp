// SPDX-License-Identifier: MIT
#include "elliptical/run/comparison_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "elliptical/base/errors.h"
#include "elliptical/base/names.h"
#include "elliptical/run/comparison_cost.h"

namespace elliptical::run {
namespace {

/// The tasks that can do something, as recipes call them.
std::string tasks_that(const std::function<bool(const measure::TaskMeasures&)>& can) {
  std::vector<std::string> names;
  for (const measure::TaskMeasures* measures : tasks::measure_table()) {
    if (can(*measures)) names.emplace_back(measures->task);
  }
  return join(names);
}

/// Options that the task of the recipes does not know are refused.
void check_task(const WorkRequest& request, const measure::TaskMeasures& measures) {
  const auto refuse = [&](const char* option, const auto& can, const std::string& advice) {
    throw UsageError(fmt::format("compare: {} needs recipes of {}, these are of {}{}", option,
                                 tasks_that(can), measures.task, advice));
  };
  std::string damage;
  if (const measure::Perturbation* usual = measures.usual_perturbation()) {
    const measure::Parameter first = measure::parameters_of(*usual).front();
    damage = fmt::format(" (a {} is damaged by: --{} {})", measures.data, first.flag, first.usual);
  }
  using Measures = measure::TaskMeasures;
  if (request.attacks && !measures.is_attacked) {
    refuse("--attack", [](const Measures& task) { return task.is_attacked; }, damage);
  }
  if (request.num_pictures.value_or(0) > 0 && !measures.has_pictures) {
    refuse("--pictures", [](const Measures& task) { return task.has_pictures; }, damage);
  }
  const auto has_method = [&](const Measures& task) {
    return std::find(task.methods.begin(), task.methods.end(), *request.method) !=
           task.methods.end();
  };
  if (request.method && !has_method(measures)) {
    refuse("--method", has_method, " (leave it out)");
  }
}

}  // namespace

ComparisonWork plan_work(const WorkRequest& request) {
  ComparisonRequest plan{.seeds = parse_seeds(request.seeds),
                         .controls = parse_controls(request.controls),
                         .folder = request.folder};
  for (const RecipeRequest& recipe : request.recipes) plan.recipes.push_back(read_options(recipe));
  ComparisonWork work{.plan = plan_comparison(plan),
                      .split = request.split.value_or(kUsualSplit),
                      .num_pictures = request.num_pictures.value_or(0),
                      .num_jobs = request.num_jobs,
                      .num_threads = request.num_threads};
  const measure::TaskMeasures& measures =
      *tasks::find_task(work.plan.front().options.task.name()).measures;
  check_task(request, measures);
  if (!measures.methods.empty()) work.method = request.method.value_or(measures.methods.front());
  if (request.attacks) {
    work.attacks =
        make_attack_plan({.attacks = *request.attacks, .eps = request.eps.value_or(kUsualEps)});
  }
  work.damages = measure::chosen_damages(measures, request.damage);
  work.num_eval_units = num_eval_units(work);
  return work;
}

}  // namespace elliptical::run
