// SPDX-License-Identifier: MIT
//
// The sections of a report as HTML. Everything that comes from runs is escaped here.
#pragma once

#include <string>
#include <vector>

#include "elliptical/report/charts.h"
#include "elliptical/report/comparison.h"

namespace elliptical::report {

/// "12 runs", "1 run".
std::string counted(size_t count, const std::string& noun);

std::string smoke_box();  ///< the banner of smoke runs
std::string problems_box(const std::vector<std::string>& problems);
std::string headline_section(const Comparison& comparison);
/// Means, spreads and differences of all methods and measures, as a table and as charts.
std::string comparison_section(const Comparison& comparison, const ChartGroups& charts);
std::string chart_section(const std::string& title,
                          const std::string& lead,
                          const std::vector<Chart>& charts,
                          const std::string& controls = "");
std::string attacked_section();  ///< the page draws its pictures
std::string corruption_section(const Comparison& comparison, const std::vector<Chart>& charts);
std::string loss_section(const std::vector<Chart>& charts);
std::string heat_section();  ///< the page draws its maps
std::string head_section(const ChartGroups& charts);
std::string number_section(size_t num_listed, size_t num_all);

}  // namespace elliptical::report
