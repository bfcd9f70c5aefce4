// SPDX-License-Identifier: MIT
#include "elliptical/run/comparison_cost.h"

#include <fmt/format.h>

#include <algorithm>

#include "elliptical/run/progress.h"
#include "elliptical/tasks/task.h"

namespace elliptical::run {
namespace {

/// What the value of a metric will be is not known yet, and costs nothing.
RunOptions options_of(const PlannedRun& planned) {
  return planned.value_of ? with_value(planned, 1.0) : planned.options;
}

tasks::EvalCost eval_cost(const PlannedRun& planned, const ComparisonWork& work) {
  RunOptions options = options_of(planned);
  const auto cost = tasks::find_task(options.task.name()).eval_cost;
  if (cost == nullptr) return {};
  return cost(options.task.options(), work.method, work.num_eval_units);
}

}  // namespace

int64_t num_eval_units(const ComparisonWork& work) {
  RunOptions options = options_of(work.plan.front());
  const auto count = tasks::find_task(options.task.name()).eval_units;
  return count == nullptr ? 0 : count(options.task.options(), work.method, work.split);
}

double attack_steps(const std::vector<AttackCase>& cases,
                    const PlannedRun& planned,
                    int64_t num_pictures) {
  constexpr int64_t kClasses = 10, kPictures = 10000;
  RunOptions options = options_of(planned);
  const auto cost = tasks::find_task(options.task.name()).cost;
  if (cases.empty() || cost == nullptr) return 0;
  const int64_t per_step = std::max<int64_t>(cost(options.task.options()).units_per_step, 1);
  int64_t passes = 0;
  for (const AttackCase& each : cases) {
    passes += attack::make_attack(each.attack)->max_passes(kClasses);
  }
  const int64_t count = num_pictures > 0 ? num_pictures : kPictures;
  return static_cast<double>(passes * count) / static_cast<double>(per_step);
}

double eval_steps(const PlannedRun& planned, const ComparisonWork& work) {
  return eval_cost(planned, work).steps;
}

std::string eval_cost_text(const ComparisonWork& work, size_t num_evaluations) {
  const PlannedRun& first = work.plan.front();
  const tasks::EvalCost cost = eval_cost(first, work);
  if (cost.steps == 0 || num_evaluations == 0) return "";
  return fmt::format(
      "{}: {} evaluations of {} each, {} {} to be read; one costs about as much as {:.0f} steps of "
      "training, a run has {}",
      cost.method, num_evaluations, cost.size,
      rate_text(cost.num_units * static_cast<double>(num_evaluations)), cost.unit,
      std::max(1.0, cost.steps), first.options.train.steps);
}

}  // namespace elliptical::run
