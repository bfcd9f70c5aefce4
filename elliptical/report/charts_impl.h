// SPDX-License-Identifier: MIT
//
// What files of charts share, and the charts of heads.
#pragma once

#include <string>
#include <vector>

#include "elliptical/report/charts.h"

namespace elliptical::report {

/// A method has the same colour in all charts. The legend names those that the table has rows of;
/// without a table, or with more than twelve, there is none.
nlohmann::json method_colour(const std::vector<std::string>& methods, const DataTable* table);

std::vector<Chart> metric_charts(const std::vector<std::string>& methods, const ChartData& data);
std::vector<Chart> snapshot_charts();

}  // namespace elliptical::report
