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

/// Groups of charts, as sections of the page show them. A chart without data is left out.
struct ChartGroups {
  std::vector<Chart> differences;  ///< to the reference, one for each measure
  std::vector<Chart> to_matched;   ///< to the matched constant
  std::vector<Chart> perplexities, losses, speeds;
  std::vector<Chart> attacks, corruptions;  ///< see robustness.h
  std::vector<Chart> costs;                 ///< of attention variants, see variant_bench.h
  std::vector<Chart> metric;                ///< of the selected run: means of heads, profile, drift
  std::vector<Chart> snapshots;             ///< of the selected head: ellipse, attention
};

ChartGroups make_charts(const Comparison& comparison,
                        const std::vector<std::string>& methods,
                        const ChartData& data,
                        bool has_snapshots);

}  // namespace elliptical::report
