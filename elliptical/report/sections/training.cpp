// SPDX-License-Identifier: MIT
//
// Losses and speeds while training.
#include "elliptical/report/section.h"
#include "elliptical/report/section_html.h"

namespace elliptical::report {

SectionParts loss_section(const ReportInput& input) {
  SectionParts parts;
  add_loss_data(input.runs, input.methods, parts.tables, parts.problems);
  parts.charts = loss_charts(input.methods, parts.tables);
  if (parts.charts.empty()) return parts;
  const std::string steps =
      selector("steps", "Steps",
               "<option value=\"all\">all</option><option value=\"half\">last half</option>"
               "<option value=\"tenth\">last tenth</option>");
  parts.html = section("Training", input.measures().loss_lead,
                       figure(parts.charts.front(), controls(steps)));
  return parts;
}

SectionParts speed_section(const ReportInput& input) {
  SectionParts parts;
  add_speed_data(input.comparison, input.methods, parts.tables);
  parts.charts = speed_charts(input.comparison.unit, input.methods, parts.tables);
  parts.html = chart_section("Speed", "Measured while training.", parts.charts);
  return parts;
}

}  // namespace elliptical::report
