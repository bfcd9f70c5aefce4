// SPDX-License-Identifier: MIT
//
// Parts of make_charts that stand in files of their own.
#pragma once

#include <string>
#include <vector>

#include "elliptical/report/charts.h"

namespace elliptical::report {

std::vector<Chart> metric_charts(const std::vector<std::string>& methods, const ChartData& data);
std::vector<Chart> snapshot_charts();

}  // namespace elliptical::report
