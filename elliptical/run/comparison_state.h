// SPDX-License-Identifier: MIT
//
// What of a run of a comparison is there already, read from its folder: a comparison that was
// stopped goes on with the rest.
#pragma once

#include <optional>
#include <vector>

#include "elliptical/run/comparison_work.h"

namespace elliptical::run {

/// What of a planned run is there already, and what is still to be done.
struct RunState {
  bool is_trained = false;
  std::optional<double> metric_mean;
  bool lacks_clean = true;                     ///< its evaluation is to be done
  std::vector<measure::ChosenDamage> damages;  ///< the same
  std::vector<AttackCase> attacks;             ///< the same
  double part_trained = 0, part_attacked = 0;
  double parts_measured = 0;  ///< of the evaluations to be done: 1.5 is one and a half

  size_t num_evaluations() const { return damages.size() + (lacks_clean ? 1 : 0); }
  bool is_whole() const { return is_trained && num_evaluations() == 0 && attacks.empty(); }
};

RunState state_of(const PlannedRun& planned, const ComparisonWork& work);

}  // namespace elliptical::run
