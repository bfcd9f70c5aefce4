// SPDX-License-Identifier: MIT
//
// How the main measure of a task (accuracy) falls when its data are attacked or corrupted, from the
// records that the task declares (measure/task_measures.h). Points are means over seeds with the
// range over seeds. Of each run the last measured step counts, and of records of the same thing the
// newest.
#pragma once

#include <string>
#include <vector>

#include "elliptical/report/charts.h"

namespace elliptical::report {

/// Points of a table, and charts of attacks, that a page has at most.
inline constexpr size_t kMaxRobustnessRows = 4000, kMaxAttackCharts = 24;

/// "attacks": the measure over eps in 255ths, clean at 0.
/// Only like is drawn together: of several data sets the one that most runs were measured on.
void add_attack_data(const std::vector<RunData>& runs,
                     const std::vector<std::string>& methods,
                     const measure::TaskMeasures& measures,
                     ChartData& data,
                     std::vector<std::string>& problems);

/// "corruptions": the measure of each corruption, mean over the severities that all its runs have;
/// "severities": over severity, of each corruption and of the mean of those that all runs have at
/// all severities; "corruption_errors". Of several data sets as above.
void add_corruption_data(const std::vector<RunData>& runs,
                         const std::vector<std::string>& methods,
                         const measure::TaskMeasures& measures,
                         ChartData& data,
                         std::vector<std::string>& problems);

/// One for each attack and profile.
std::vector<Chart> attack_charts(const std::vector<std::string>& methods,
                                 const measure::TaskMeasures& measures,
                                 const ChartData& data);

/// "corruptions", "severities" and one for each error: "mce", "extra_mce".
std::vector<Chart> corruption_charts(const std::vector<std::string>& methods,
                                     const measure::TaskMeasures& measures,
                                     const ChartData& data);

}  // namespace elliptical::report
