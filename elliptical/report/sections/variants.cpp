// SPDX-License-Identifier: MIT
//
// What attention variants cost, beside the runs.
#include "elliptical/report/escape.h"
#include "elliptical/report/section.h"
#include "elliptical/report/section_html.h"

namespace elliptical::report {

SectionParts variant_section(const ReportInput& input) {
  if (!input.bench) return {};
  SectionParts parts{.charts = variant_charts(*input.bench)};
  parts.tables.emplace("variant_times", input.bench->times);
  parts.tables.emplace("variant_memory", input.bench->memory);
  parts.html = chart_section("What attention variants cost",
                             "Measured by `elliptical bench --what variants` on " +
                                 escape_html(input.bench->machine) + ".",
                             parts.charts);
  return parts;
}

}  // namespace elliptical::report
