// SPDX-License-Identifier: MIT
//
// What the charts of a report draw, from comparisons and from runs. Sizes are bounded whatever the
// number of runs: curves are means over at most `kMaxPoints` ranges of steps, beyond `kMaxLines`
// runs there is one line for each method, and pictures of single heads are of chosen runs.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "elliptical/report/comparison.h"
#include "elliptical/report/data_table.h"
#include "elliptical/report/run_data.h"

namespace elliptical::report {

inline constexpr size_t kMaxPoints = 150, kMaxLines = 40, kMaxMethods = 24, kMaxChosen = 12;

/// Tables by the name that specifications of charts refer to.
using ChartData = std::map<std::string, DataTable>;

/// Methods that charts draw: those of the comparison first, in its order, then other names of runs;
/// `kMaxMethods` at most.
std::vector<std::string> drawn_methods(const Comparison& comparison,
                                       const std::vector<RunData>& runs);

/// Indices of runs whose heads are shown, `kMaxChosen` at most: all of them, else the first of each
/// drawn method.
std::vector<size_t> chosen_runs(const std::vector<RunData>& runs,
                                const std::vector<std::string>& methods);

/// The first run of each drawn method: runs are sorted, so it has the lowest seed.
std::vector<size_t> first_runs(const std::vector<RunData>& runs,
                               const std::vector<std::string>& methods);

/// "differences".
void add_difference_data(const Comparison& comparison,
                         const std::vector<std::string>& methods,
                         ChartData& data);

/// "values" (one seed each), "means"; clean against damaged data: "pairs" (one seed each),
/// "pair_means".
void add_value_data(const Comparison& comparison,
                    const std::vector<std::string>& methods,
                    ChartData& data);

/// "speeds".
void add_speed_data(const Comparison& comparison,
                    const std::vector<std::string>& methods,
                    ChartData& data);

/// "losses": training and validation, in nats per token, with the range over runs where lines are
/// means over runs.
void add_loss_data(const std::vector<RunData>& runs,
                   const std::vector<std::string>& methods,
                   ChartData& data,
                   std::vector<std::string>& problems);

/// "heads", "profiles" (newest measurement) and "drift", "head_drift" (over training) of chosen
/// runs; `run` is the index in `runs`.
void add_metric_data(const std::vector<RunData>& runs,
                     const std::vector<size_t>& chosen,
                     ChartData& data);

}  // namespace elliptical::report
