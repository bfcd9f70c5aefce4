// SPDX-License-Identifier: MIT
//
// What is left of the main measure under attack, and pictures before and after one.
#include "elliptical/report/attack_pictures.h"
#include "elliptical/report/robustness.h"
#include "elliptical/report/section.h"
#include "elliptical/report/section_html.h"

namespace elliptical::report {

SectionParts attack_section(const ReportInput& input) {
  SectionParts parts;
  add_attack_data(input.runs, input.methods, input.measures(), parts.tables, parts.problems);
  parts.charts = attack_charts(input.methods, input.measures(), parts.tables);
  parts.html = chart_section("Attacks",
                             input.measures().main().title() + " over eps, " +
                                 input.measures().robustness.attack_lead +
                                 " What is left is an upper bound: a stronger attack can only "
                                 "lower it.",
                             parts.charts);
  return parts;
}

/// The page draws its pictures.
SectionParts attacked_section(const ReportInput& input) {
  SectionParts parts;
  const nlohmann::json attacked =
      read_attack_pictures(input.runs, input.first_runs, parts.problems);
  if (!attacked.empty()) {
    parts.html = section(
        "Attacked pictures",
        "Before and after an attack, and the difference, magnified: grey is no change. Pictures "
        "whose class changed come first; a tick marks the right class.",
        controls(selector("attacked", "Run")) + "<div id=\"attacked\"></div>\n");
  }
  parts.data["attacked"] = attacked;
  return parts;
}

}  // namespace elliptical::report
