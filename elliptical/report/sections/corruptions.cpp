// SPDX-License-Identifier: MIT
//
// Damage without malice: by kind, by severity, and its mean errors.
#include "elliptical/report/robustness.h"
#include "elliptical/report/section.h"
#include "elliptical/report/section_html.h"

namespace elliptical::report {

SectionParts corruption_section(const ReportInput& input) {
  SectionParts parts;
  add_corruption_data(input.runs, input.methods, input.measures(), parts.tables, parts.problems);
  parts.charts = corruption_charts(input.methods, input.measures(), parts.tables);
  if (parts.charts.empty()) return parts;
  std::string content = "<div class=\"grid\">\n";
  for (const Chart& chart : parts.charts) {
    const bool has_choice = chart.id == "severities";
    content += figure(chart, has_choice ? controls(selector("corruption", "Corruption")) : "");
  }
  parts.html = section("Corruptions",
                       input.measures().main().title() + " on " + input.measures().data +
                           " that were damaged without malice.",
                       content + "</div>\n");
  return parts;
}

}  // namespace elliptical::report
