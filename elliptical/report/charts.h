// SPDX-License-Identifier: MIT
//
// The charts of a report as Vega-Lite specifications. They hold no data: tables are named, and the
// page hands them over. Two kinds of text are filled in by the page when it draws: "var(--NAME)" is
// a colour of its style, so that charts are light or dark as the page is, and "$NAME" a value that
// depends on what is selected.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "elliptical/report/chart_data.h"
#include "elliptical/report/comparison.h"

namespace elliptical::report {

struct Chart {
  std::string id;
  std::string title, text;          ///< caption: what is drawn, how to read it
  std::vector<std::string> tables;  ///< what it draws; the first one is offered as a table
  nlohmann::json spec;
  /// Of the tables, only rows with these values, by column: what is drawn and what is offered.
  std::map<std::string, std::string> where = {};
};

// A chart without data is left out.

/// Differences to the method `against`, one for each column.
std::vector<Chart> difference_charts(const std::string& prefix,
                                     const std::string& against,
                                     const Comparison& comparison,
                                     const std::vector<std::string>& methods,
                                     const ChartData& data);
/// Clean against damaged data, and values of the other columns that have no section of their own.
std::vector<Chart> value_charts(const Comparison& comparison,
                                const std::vector<std::string>& methods,
                                const ChartData& data);
std::vector<Chart> loss_charts(const std::vector<std::string>& methods, const ChartData& data);
std::vector<Chart> speed_charts(const std::string& unit,
                                const std::vector<std::string>& methods,
                                const ChartData& data);

}  // namespace elliptical::report
