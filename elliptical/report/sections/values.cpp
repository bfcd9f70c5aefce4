// SPDX-License-Identifier: MIT
//
// Each column of the comparison that no other section draws: values of all seeds, clean against damaged.
#include "elliptical/report/section.h"
#include "elliptical/report/section_html.h"

namespace elliptical::report {

SectionParts value_section(const ReportInput& input) {
  SectionParts parts;
  add_value_data(input.comparison, input.methods, parts.tables);
  parts.charts = value_charts(input.comparison, input.methods, parts.tables);
  std::string damaged = input.comparison.damaged();
  if (!damaged.empty()) damaged = " and " + damaged;
  parts.html = chart_section("Clean" + damaged + " " + input.measures().data, input.measures().lead,
                             parts.charts);
  return parts;
}

}  // namespace elliptical::report
