// SPDX-License-Identifier: MIT
//
// Which runs a comparison is made of: each recipe and each control with each seed. Seed after seed,
// so that what is there after an early stop can be compared.
//
// Controls belong to the first recipe with elliptical attention: the same recipe with another
// metric (base/controls.h). Some need a number that is known only when the elliptical run of the
// same seed has been trained: the mean of its metric.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "elliptical/base/records.h"
#include "elliptical/run/run_options.h"

namespace elliptical::run {

struct PlannedRun {
  std::string name;
  std::filesystem::path folder;
  RunOptions options;  ///< all but the value of the metric where `value_of` says so
  std::optional<size_t> value_of = {};  ///< the run, earlier in the plan, whose metric is measured
  double value_factor = 1;

  int64_t seed() const { return options.seed; }
  /// "matched constant, seed 2"
  std::string title() const;
};

struct ComparisonRequest {
  std::vector<RunOptions> recipes;
  std::vector<int64_t> seeds;
  std::vector<std::string> controls;  ///< of kControls
  std::filesystem::path folder;       ///< of all runs
};

/// Throws ConfigError when the recipes can not be compared: of different tasks or data, of one
/// name.
std::vector<PlannedRun> plan_comparison(const ComparisonRequest& request);

/// The mean of the metric that a run's training measured after its last step; none: not there.
std::optional<double> measured_metric_mean(const std::vector<Record>& records, int64_t step);

/// The options of a run whose metric has the measured `mean` of the run it depends on.
RunOptions with_value(const PlannedRun& planned, double mean);

/// "3": 1, 2, 3. "2,5": these. Throws UsageError.
std::vector<int64_t> parse_seeds(const std::string& text);

/// "all", "none", or names of controls with commas between them. Throws UsageError.
std::vector<std::string> parse_controls(const std::string& text);

}  // namespace elliptical::run
