// SPDX-License-Identifier: MIT
#include "elliptical/measure/missing.h"

#include <algorithm>
#include <numeric>

#include "elliptical/measure/labels.h"
#include "elliptical/measure/measurements.h"

namespace elliptical::measure {
namespace {

/// The reading that is asked for: that of the validation while training, by another method.
Reading wanted_reading(Reading reading, const std::string& method) {
  if (method.empty() || reading.method == method) return reading;
  reading.method = method;
  if (method == "sliding") {
    reading.columns = 0;
    reading.stride = 1;
  }
  return reading;
}

/// The measurements that are whole, of the split and of data read as they are to be.
Measurements whole_measurements(const std::vector<Record>& records,
                                int64_t step,
                                const TaskMeasures& measures,
                                const std::string& split,
                                const Reading& reading) {
  Measurements result = measurements_at(records, step, measures);
  std::erase_if(result, [&](const auto& entry) {
    const auto& [circumstances, by_number] = entry;
    const bool is_asked = circumstances.split == split && circumstances.reading == reading;
    return !is_asked || std::any_of(by_number.begin(), by_number.end(),
                                    [](const auto& each) { return each.second.blocks.empty(); });
  });
  return result;
}

bool is_wanted(const Circumstances& is, const ChosenDamage& wanted) {
  return is.perturbation == wanted.perturbation && is.strength == wanted.strength &&
         is.corruption == wanted.kind && is_usual_damage(is);
}

/// 0, 1, ...: all of them lack.
std::vector<size_t> places(size_t count) {
  std::vector<size_t> all(count);
  std::iota(all.begin(), all.end(), size_t{0});
  return all;
}

}  // namespace

Missing missing_of(const std::vector<Record>& records,
                   int64_t last_step,
                   const TaskMeasures& measures,
                   const WantedMeasurements& wanted) {
  Missing missing{.damages = places(wanted.damages.size()),
                  .attacks = places(wanted.attacks.size())};
  const auto validation = std::find_if(records.begin(), records.end(), [&](const Record& record) {
    return source_of(record) == Source::kTraining && step_of(record) == last_step &&
           is_clean_number(record, measures);
  });
  missing.validation = validation == records.end();
  if (missing.validation) return missing;
  const Reading reading = wanted_reading(reading_of(*validation), wanted.method);
  const Measurements measured =
      whole_measurements(records, last_step, measures, wanted.split, reading);

  // How many pictures there are says the clean evaluation: without it nothing else counts.
  int64_t num_all = 0;
  for (const auto& [circumstances, by_number] : measured) {
    if (circumstances.condition != Condition::kClean || circumstances.num_pictures > 0) continue;
    missing.clean = false;
    num_all = by_number.begin()->second.count;
  }
  if (missing.clean) return missing;
  const bool is_part = wanted.num_pictures > 0 && wanted.num_pictures < num_all;
  for (const auto& [circumstances, by_number] : measured) {
    const Circumstances& is = circumstances;
    if (is.num_pictures == (is_part ? wanted.num_pictures : 0)) {
      std::erase_if(missing.damages, [&](size_t i) { return is_wanted(is, wanted.damages[i]); });
    }
    if (is.condition == Condition::kAttacked &&
        is.num_pictures == (is_part ? wanted.num_pictures : num_all)) {
      std::erase_if(missing.attacks, [&](size_t i) { return wanted.attacks[i] == is.attack; });
    }
  }
  return missing;
}

}  // namespace elliptical::measure
