// SPDX-License-Identifier: MIT
//
// What of a run of a comparison is there already, read from its folder: a comparison that was
// stopped goes on with the rest.
#pragma once

#include <optional>
#include <vector>

#include "elliptical/cli/comparison_runner.h"

namespace elliptical::cli {

/// What of a planned run is there already.
struct RunState {
  bool is_trained = false;
  std::optional<double> metric_mean;
  bool lacks_clean = true, lacks_damaged = true;  ///< evaluations to be done
  std::vector<run::AttackCase> attacks;           ///< to be done
  double part_trained = 0, part_attacked = 0;
  double parts_measured = 0;  ///< of the evaluations to be done: 1.5 is one and a half
  bool is_whole() const { return is_trained && !lacks_clean && !lacks_damaged && attacks.empty(); }
};

RunState state_of(const run::PlannedRun& planned, const ComparisonWork& work);

}  // namespace elliptical::cli
