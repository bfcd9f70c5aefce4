// SPDX-License-Identifier: MIT
//
// Every number with the command that measures it again.
#include "elliptical/report/number_list.h"
#include "elliptical/report/section.h"
#include "elliptical/report/section_html.h"

namespace elliptical::report {
namespace {

std::string number_table(size_t num_listed, size_t num_all) {
  if (num_listed == 0) return "";
  std::string lead = "Each with the command that measures it again; open a row for its record.";
  if (num_listed < num_all) {
    lead += " The first " + std::to_string(num_listed) + " of " + counted(num_all, "number") + ".";
  }
  return section(
      "Numbers", lead,
      "<div class=\"controls\"><label>Filter <input id=\"filter\" type=\"search\" "
      "placeholder=\"method, split, ...\">"
      "</label></div>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" "
      "aria-label=\"Numbers\"><table id=\"numbers\">"
      "<thead><tr><th scope=\"col\">run</th><th scope=\"col\">metric</th><th scope=\"col\">of</th>"
      "<th scope=\"col\">value</th><th scope=\"col\">count</th><th "
      "scope=\"col\">command</th></tr></thead>"
      "<tbody></tbody></table></div>\n");
}

}  // namespace

SectionParts number_section(const ReportInput& input) {
  NumberList numbers = list_numbers(input.runs);
  SectionParts parts{.html = number_table(numbers.rows.size(), numbers.num_all)};
  parts.data["numbers"] = std::move(numbers.rows);
  return parts;
}

}  // namespace elliptical::report
