// SPDX-License-Identifier: MIT
//
// What a busy neighbour costs: training and attention beside a process that does nothing but keep a
// processor busy, against the same when it is stopped, in turns. Of two cores such a process, in a
// session of its own, has one half at least: a loop whose halves wait for each other can then go
// at half its speed, a little less or more.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "bench/cases.h"
#include "bench/measure.h"
#include "bench/training.h"

namespace elliptical::bench {

/// A process that is busy when it is let; it dies with this one.
class Neighbour {
 public:
  Neighbour();  ///< at rest
  ~Neighbour();
  Neighbour(const Neighbour&) = delete;
  Neighbour& operator=(const Neighbour&) = delete;

  void set_busy(bool busy);
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = 0;
};

struct NeighbourResult {
  /// Part of the quiet speed that must be left, ratio of the medians.
  static constexpr double kMust = 0.45;

  std::string what;  ///< "training", "attention"
  Timing quiet, beside;

  double ratio_min() const { return quiet.min / beside.min; }
  double ratio_median() const { return quiet.median / beside.median; }
};

/// Steps of `shape` with elliptical attention, and forward calls of `attention`.
std::vector<NeighbourResult> measure_neighbour(const TrainingCase& shape,
                                               const AttentionCase& attention,
                                               int repeats,
                                               const ProgressFn& progress = {});

}  // namespace elliptical::bench
