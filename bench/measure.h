// SPDX-License-Identifier: MIT
//
// Interleaved timing. A shared machine drifts by tens of percent within seconds, so contestants
// take turns, call by call, and only their ratio within one measurement is meant to be compared.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/cases.h"
#include "bench/contestant.h"

namespace elliptical::bench {

struct MeasureOptions {
  int repeats = 20;        ///< calls of each contestant, at least
  double min_time = 1.0;   ///< seconds spent on the whole measurement, at least
  int max_repeats = 2000;  ///< ends the measurement of tiny problems
};

/// Seconds per call.
struct Timing {
  double min = 0;
  double median = 0;
  int calls = 0;
};

/// Minimum and median of at least one call.
Timing summarize(std::vector<double> seconds);

/// Told before each piece of work, and once more when all are done: `done` of `total`, and what
/// follows.
using ProgressFn = std::function<void(size_t done, size_t total, const std::string& what)>;

/// Rounds of something that is slow enough to be counted in rounds.
struct Turns {
  int warm_up = 2;  ///< rounds that do not count
  int repeats = 20;
  std::string what = {};  ///< for `progress`
  ProgressFn progress = {};
};

/// Rounds in which each of `count` contestants runs once, in order: `seconds_of(i)` runs number i.
std::vector<Timing> take_turns(size_t count,
                               const Turns& turns,
                               const std::function<double(size_t)>& seconds_of);

/// Two warm-up rounds, then rounds in which each contestant is called once, in the order given. One
/// Timing per contestant.
std::vector<Timing> measure(const std::vector<Contestant*>& contestants,
                            Pass pass,
                            const MeasureOptions& options);

/// Ours against one peer on one case.
struct Comparison {
  TimedCase timed;
  Pass pass = Pass::kForward;
  std::string peer;
  std::string skipped;  ///< why there are no times; empty when there are
  Timing ours, theirs;
  double ours_error = 0;  ///< worst of `errors`, relative
  double theirs_error = 0;
  /// Which tensor of ours is further from the double result than it may be; empty when all are
  /// right.
  std::string inexact;

  double ratio_min() const { return theirs.min / ours.min; }
  double ratio_median() const { return theirs.median / ours.median; }
  /// What `ratio_min` must reach, or 0 when this peer sets no target.
  double must() const { return peer == timed.rival ? timed.must(pass) : 0; }
};

/// Checks everybody's answer against double precision, then times them in turns. Throws
/// std::runtime_error when a peer computes something else.
std::vector<Comparison> compare(const TimedCase& timed,
                                Pass pass,
                                const std::vector<std::string>& peers,
                                int num_threads,
                                const MeasureOptions& options);

}  // namespace elliptical::bench
