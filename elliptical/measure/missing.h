// SPDX-License-Identifier: MIT
//
// What a run still lacks for a comparison, told from its records alone: a comparison that was
// stopped goes on with the rest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "elliptical/base/records.h"
#include "elliptical/measure/chosen_damage.h"
#include "elliptical/measure/circumstances.h"

namespace elliptical::measure {

/// What a comparison measures of each run.
struct WantedMeasurements {
  std::string split;
  std::string method;  ///< of reading the data; empty: as the validation while training
  std::vector<ChosenDamage> damages;  ///< beside clean data, otherwise as usual
  std::vector<AttackKind> attacks;
  int64_t num_pictures = 0;  ///< damaged and attacked ones: only so many; 0: all
};

struct Missing {
  bool validation = true;  ///< after the last step of training: nothing is known about the data
  bool clean = true;
  std::vector<size_t> damages, attacks;  ///< places in those of WantedMeasurements
};

/// What lacks of a run whose training ends with `last_step`. Measurements without records of parts of
/// the data count as missing: they give no intervals.
Missing missing_of(const std::vector<Record>& records,
                   int64_t last_step,
                   const TaskMeasures& measures,
                   const WantedMeasurements& wanted);

}  // namespace elliptical::measure
