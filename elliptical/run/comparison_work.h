// SPDX-License-Identifier: MIT
//
// What a comparison has to do: the planned runs, how each is measured and attacked, and what of
// that is there already.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "elliptical/run/attack_plan.h"
#include "elliptical/run/comparison_plan.h"

namespace elliptical::run {

struct ComparisonWork {
  std::vector<PlannedRun> plan;
  std::string split = "test";
  std::string method;          ///< of reading text: "block", "sliding", "stream"; empty of pictures
  int64_t num_eval_units = 0;  ///< of that split, where they must be known to tell the cost
  /// How damaged data are measured: what records tell of it, and the options of the evaluation;
  /// none of those: clean data only.
  std::string perturbation;
  double strength = 0;
  std::string corruption;
  std::vector<std::string> damage;
  AttackPlan attacks;        ///< strict, through the metric; no cases: none
  int64_t num_pictures = 0;  ///< damaged and attacked ones: only so many; 0: all
  int num_jobs = 1;
  int num_threads = 0;  ///< of all jobs together; 0: all cores
};

/// What of a planned run is there already.
struct RunState {
  bool is_trained = false;
  std::optional<double> metric_mean;
  bool lacks_clean = true, lacks_damaged = true;  ///< evaluations to be done
  std::vector<AttackCase> attacks;                ///< to be done
  double part_trained = 0, part_attacked = 0;
  double parts_measured = 0;  ///< of the evaluations to be done: 1.5 is one and a half
  bool is_whole() const { return is_trained && !lacks_clean && !lacks_damaged && attacks.empty(); }
};

}  // namespace elliptical::run
