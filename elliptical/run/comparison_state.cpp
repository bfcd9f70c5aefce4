// SPDX-License-Identifier: MIT
#include "elliptical/run/comparison_state.h"

#include <algorithm>

#include "elliptical/base/checkpoint_folder.h"
#include "elliptical/measure/missing.h"
#include "elliptical/run/run_folder.h"

namespace elliptical::run {
namespace {

/// What a comparison measures of each run, as records tell it.
measure::WantedMeasurements wanted_of(const ComparisonWork& work) {
  measure::WantedMeasurements wanted{.split = work.split,
                                     .method = work.method,
                                     .damages = work.damages,
                                     .num_pictures = work.num_pictures};
  for (const AttackCase& each : work.attacks.cases) {
    wanted.attacks.push_back({.name = each.attack.name(),
                              .eps = each.eps,
                              .profile = std::string(to_string(AttackProfile::kStrict)),
                              .metric_gradient = "through",
                              .seed = work.attacks.seed});
  }
  return wanted;
}

}  // namespace

RunState state_of(const PlannedRun& planned, const ComparisonWork& work) {
  RunState state{.damages = work.damages, .attacks = work.attacks.cases};
  const RunPaths paths{planned.folder};
  const measure::TaskMeasures& measures = *tasks::find_task(planned.options.task.name()).measures;
  const int64_t last = planned.options.train.steps;
  const std::vector<int64_t> steps = checkpoint_steps(paths.checkpoints());
  if (steps.empty() || !fs::exists(paths.config())) return state;
  state.part_trained =
      static_cast<double>(steps.back()) / static_cast<double>(std::max<int64_t>(last, 1));

  // Damaged lines are told where the table is made; what they said is measured again.
  const auto leave_out = [](const std::string&) {};
  const std::vector<Record> records = read_records(paths.records(), leave_out);
  const measure::Missing missing = measure::missing_of(records, last, measures, wanted_of(work));
  state.is_trained = steps.back() == last && (last == 0 || !missing.validation);
  state.metric_mean = measured_metric_mean(records, last);
  state.lacks_clean = missing.clean;
  state.damages.clear();
  for (const size_t i : missing.damages) state.damages.push_back(work.damages[i]);
  state.attacks.clear();
  for (const size_t i : missing.attacks) state.attacks.push_back(work.attacks.cases[i]);
  return state;
}

}  // namespace elliptical::run
