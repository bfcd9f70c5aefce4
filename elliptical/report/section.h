// SPDX-License-Identifier: MIT
//
// Sections of a report, and the table of them (section_table.cpp): who adds one writes a function
// in report/sections/ and its row. A section reads runs and their comparison and leaves HTML, what
// the page's script draws, and what people should know. Whatever a task calls its data and numbers
// comes from its declaration (measure/task_measures.h), so that a section serves all tasks that
// have such records.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "elliptical/report/charts.h"
#include "elliptical/report/comparison.h"
#include "elliptical/report/run_data.h"
#include "elliptical/report/variant_bench.h"

namespace elliptical::report {

/// What sections are made of.
struct ReportInput {
  const std::vector<RunData>& runs;
  const Comparison& comparison;
  const std::optional<VariantBench>& bench;
  std::vector<std::string> methods;     ///< that charts draw, in their order
  std::vector<size_t> chosen = {};      ///< runs whose heads are shown
  std::vector<size_t> first_runs = {};  ///< of each method

  const measure::TaskMeasures& measures() const { return *comparison.measures; }
};

struct SectionParts {
  std::string html;           ///< empty: the page has no such section
  std::vector<Chart> charts;  ///< of figures in it
  ChartData tables;           ///< that these charts draw
  /// What the page's script finds under these names besides.
  std::map<std::string, nlohmann::json> data;
  std::vector<std::string> problems;
};

/// One line of the table of sections, which is their order on the page.
struct SectionEntry {
  const char* name;
  const char* reads;  ///< what it is made of; without that there is no such section
  SectionParts (*make)(const ReportInput& input);
};
const std::vector<SectionEntry>& section_table();

}  // namespace elliptical::report
