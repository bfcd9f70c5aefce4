// SPDX-License-Identifier: MIT
#include "elliptical/run/comparison_cost.h"

#include <fmt/format.h>

#include <algorithm>

#include "elliptical/run/progress.h"
#include "elliptical/tasks/language_model.h"
#include "elliptical/tasks/token_windows.h"

namespace elliptical::run {
namespace {

/// What the value of a metric will be is not known yet, and costs nothing.
RunOptions options_of(const PlannedRun& planned) {
  return planned.value_of ? with_value(planned, 1.0) : planned.options;
}

struct SlidingWork {
  tasks::SlidingCost cost;
  int64_t window = 0;
  int64_t tokens_per_step = 1;
};

SlidingWork sliding_work(const PlannedRun& planned, int64_t num_tokens) {
  RunOptions options = options_of(planned);
  const auto& lm = dynamic_cast<const tasks::LanguageModelOptions&>(options.task.options());
  return {.cost = tasks::sliding_cost(num_tokens, lm.model.window, /*stride=*/1),
          .window = lm.model.window,
          .tokens_per_step = lm.batch_size * lm.model.window};
}

}  // namespace

int64_t num_sliding_tokens(const ComparisonWork& work) {
  if (work.method != "sliding") return 0;
  RunOptions options = options_of(work.plan.front());
  const auto& lm = dynamic_cast<const tasks::LanguageModelOptions&>(options.task.options());
  return tasks::num_text_tokens(lm.data, data::split_from_string(work.split));
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

double sliding_steps(const PlannedRun& planned, const ComparisonWork& work) {
  if (work.method != "sliding") return 0;
  const SlidingWork sliding = sliding_work(planned, work.num_tokens);
  return static_cast<double>(sliding.cost.num_computed) /
         (3 * static_cast<double>(sliding.tokens_per_step));
}

std::string sliding_cost_text(const ComparisonWork& work, size_t num_evaluations) {
  if (work.method != "sliding" || num_evaluations == 0) return "";
  const PlannedRun& first = work.plan.front();
  const SlidingWork sliding = sliding_work(first, work.num_tokens);
  return fmt::format(
      "sliding windows: {} evaluations of {} windows of {} tokens each, {} tokens to be read; one "
      "costs about as much as {:.0f} steps of training, a run has {}",
      num_evaluations, sliding.cost.num_windows, sliding.window,
      rate_text(static_cast<double>(sliding.cost.num_computed) *
                static_cast<double>(num_evaluations)),
      std::max(1.0, sliding_steps(first, work)), first.options.train.steps);
}

}  // namespace elliptical::run
