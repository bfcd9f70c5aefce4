// SPDX-License-Identifier: MIT
#include "elliptical/cli/comparison_state.h"

#include <algorithm>

#include "elliptical/measure/labels.h"
#include "elliptical/measure/measurements.h"
#include "elliptical/run/checkpoint.h"

namespace elliptical::cli {
namespace {

/// The reading that is asked for: that of the validation while training, by another method.
measure::Reading wanted_reading(measure::Reading reading, const std::string& method) {
  if (method.empty() || reading.method == method) return reading;
  reading.method = method;
  if (method == "sliding") {
    reading.columns = 0;
    reading.stride = 1;
  }
  return reading;
}

/// The measurements that are whole, of the split and of data read as they are to be.
measure::Measurements whole_measurements(const std::vector<Record>& records,
                                         const measure::TaskMeasures& measures,
                                         int64_t step,
                                         const std::string& split,
                                         const measure::Reading& reading) {
  measure::Measurements result = measure::measurements_at(records, step, measures);
  std::erase_if(result, [&](const auto& entry) {
    const auto& [circumstances, by_measure] = entry;
    const bool is_asked = circumstances.split == split && circumstances.reading == reading;
    return !is_asked || std::any_of(by_measure.begin(), by_measure.end(),
                                    [](const auto& each) { return each.second.blocks.empty(); });
  });
  return result;
}

bool is_case(const measure::AttackKind& attack, const run::AttackCase& each, int64_t seed) {
  const measure::AttackKind wanted{.name = each.attack.name(),
                                   .eps = each.eps,
                                   .profile = std::string(to_string(run::AttackProfile::kStrict)),
                                   .metric_gradient = "through",
                                   .seed = seed};
  return attack == wanted;
}

/// Takes out of `state` what is measured already. How many pictures there are says the clean
/// evaluation, so that without it nothing is.
void note_measured(const measure::Measurements& measured,
                   const ComparisonWork& work,
                   RunState& state) {
  int64_t num_all = 0;
  for (const auto& [circumstances, by_measure] : measured) {
    if (circumstances.condition != measure::Condition::kClean || circumstances.num_pictures > 0) {
      continue;
    }
    state.lacks_clean = false;
    num_all = by_measure.begin()->second.count;
  }
  if (state.lacks_clean) return;
  const bool is_part = work.num_pictures > 0 && work.num_pictures < num_all;
  for (const auto& [circumstances, by_measure] : measured) {
    const measure::Circumstances& is = circumstances;
    if (is.perturbation == work.perturbation && is.strength == work.strength &&
        is.corruption == work.corruption && measure::is_usual_damage(is) &&
        is.num_pictures == (is_part ? work.num_pictures : 0)) {
      state.lacks_damaged = false;
    }
    if (is.condition == measure::Condition::kAttacked &&
        is.num_pictures == (is_part ? work.num_pictures : num_all)) {
      std::erase_if(state.attacks, [&](const run::AttackCase& each) {
        return is_case(is.attack, each, work.attacks.seed);
      });
    }
  }
}

}  // namespace

RunState state_of(const run::PlannedRun& planned, const ComparisonWork& work) {
  RunState state{.lacks_damaged = !work.damage.empty(), .attacks = work.attacks.cases};
  const run::RunPaths paths{planned.folder};
  const measure::TaskMeasures& measures = *tasks::find_task(planned.options.task.name()).measures;
  const int64_t last = planned.options.train.steps;
  const std::vector<int64_t> steps = run::checkpoint_steps(paths.checkpoints());
  if (steps.empty() || !std::filesystem::exists(paths.config())) return state;
  state.part_trained =
      static_cast<double>(steps.back()) / static_cast<double>(std::max<int64_t>(last, 1));

  // Damaged lines are told where the table is made; what they said is measured again.
  const auto leave_out = [](const std::string&) {};
  const std::vector<Record> records = read_records(paths.records(), leave_out);
  const auto is_last = [&](const Record& record) {
    return measure::source_of(record) == measure::Source::kTraining &&
           measure::step_of(record) == last && measure::is_clean_number(record, measures);
  };
  const auto validation = std::find_if(records.begin(), records.end(), is_last);
  state.is_trained = steps.back() == last && (last == 0 || validation != records.end());
  state.metric_mean = run::measured_metric_mean(records, last);
  if (validation == records.end()) return state;  // nothing is known about its data
  const measure::Reading reading = wanted_reading(measure::reading_of(*validation), work.method);
  note_measured(whole_measurements(records, measures, last, work.split, reading), work, state);
  return state;
}

}  // namespace elliptical::cli
