// SPDX-License-Identifier: MIT
//
// Means, spreads and differences of all methods and measures, as a table and as charts.
#include <algorithm>
#include <set>

#include "elliptical/report/data_table.h"
#include "elliptical/report/escape.h"
#include "elliptical/report/section.h"
#include "elliptical/report/section_html.h"

namespace elliptical::report {
namespace {

constexpr size_t kMaxRows = 100;

/// As percent_text has it, with a real minus sign.
std::string percent_html(double percent) {
  const std::string text = percent_text(percent);
  return text.front() == '-' ? "&minus;" + text.substr(1) : text;
}

/// The mark points to where the difference lies, the colour says whether that is better.
std::string difference_html(const Difference& difference, const measure::Measure& measure) {
  const Verdict verdict = verdict_of(difference, measure);
  if (verdict == Verdict::kOneSeed) return "<span class=\"noise\">&ndash;</span>";
  const bool outside = verdict == Verdict::kOutside;
  const char* css = !outside ? "noise" : measure.is_gain(difference.percent) ? "better" : "worse";
  const char* mark = verdict == Verdict::kWithin ? "&#9675;"
                     : !outside                  ? "="
                     : difference.percent < 0    ? "&#9664;"
                                                 : "&#9654;";
  return std::string("<span class=\"") + css + "\">" + mark + " " +
         percent_html(difference.percent) + " [" + percent_html(difference.interval->low) + ", " +
         percent_html(difference.interval->high) + "]</span>";
}

bool in_percent(const std::string& unit) { return unit == "%"; }

/// "&thinsp;%", " points"
std::string unit_text(const measure::Measure& measure) {
  return (in_percent(measure.unit) ? "&thinsp;" : " ") + std::string(measure.unit);
}

std::string cell_html(const std::optional<Cell>& cell,
                      const measure::Measure& measure,
                      const Comparison& comparison) {
  const bool has_differences = comparison.has_intervals();
  if (!cell) return has_differences ? "<td>&ndash;</td><td>&ndash;</td>" : "<td>&ndash;</td>";
  std::string html = "<td>" + number_text(cell->mean, 4);
  if (cell->deviation_percent) {
    html += "<span class=\"second\">&plusmn; " + number_text(*cell->deviation_percent, 2) +
            unit_text(measure) + "</span>";
  }
  if (!has_differences) return html + "</td>";
  html += "</td><td>";
  html += cell->to_reference ? difference_html(*cell->to_reference, measure) : "&ndash;";
  if (cell->to_matched) {
    html += "<span class=\"second\">to " + escape_html(comparison.matched) + ": " +
            difference_html(*cell->to_matched, measure) + "</span>";
  }
  return html + "</td>";
}

const char* role_tag(Role role) {
  if (role == Role::kReference) return "<span class=\"tag\">reference</span>";
  return role == Role::kControl ? "<span class=\"tag\">control</span>" : "";
}

std::string table(const Comparison& comparison) {
  std::string html =
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" "
      "aria-label=\"Comparison\"><table>\n<thead><tr>"
      "<th rowspan=\"2\" scope=\"col\">method</th><th rowspan=\"2\" scope=\"col\">seeds</th>";
  const bool has_differences = comparison.has_intervals();
  for (const Column& column : comparison.columns) {
    html += (has_differences ? "<th colspan=\"2\" scope=\"colgroup\">" : "<th scope=\"col\">") +
            escape_html(column.name) + "</th>";
  }
  html += "<th rowspan=\"2\" scope=\"col\">" + escape_html(comparison.unit) + "/s</th></tr>\n<tr>";
  for (const Column& column : comparison.columns) {
    html += std::string("<th scope=\"col\">") + column.measure->name + "</th>";
    if (!has_differences) continue;
    html += std::string("<th scope=\"col\">difference, ") + column.measure->unit + "</th>";
  }
  html += "</tr></thead>\n<tbody>\n";
  for (size_t i = 0; i < std::min(comparison.rows.size(), kMaxRows); ++i) {
    const MethodRow& row = comparison.rows[i];
    const std::string name = escape_html(row.name);
    html += "<tr><th scope=\"row\"><span class=\"name\" title=\"" + name + "\">" + name +
            "</span>" + role_tag(row.role);
    if (row.leaks_future) html += "<span class=\"tag worse\">&#9888; sees the future</span>";
    html += "</th><td>" + std::to_string(row.seeds.size()) + "</td>";
    for (size_t c = 0; c < row.cells.size(); ++c) {
      html += cell_html(row.cells[c], *comparison.columns[c].measure, comparison);
    }
    html += "<td>" + (row.units_per_second ? number_text(*row.units_per_second, 3) : "&ndash;") +
            "</td></tr>\n";
  }
  html += "</tbody></table></div>\n";
  if (comparison.rows.size() > kMaxRows) {
    html += "<p class=\"legend\">The first " + std::to_string(kMaxRows) + " of " +
            counted(comparison.rows.size(), "method") + ".</p>\n";
  }
  return html;
}

std::string noise_text(const Comparison& comparison) {
  std::string text;
  for (const Column& column : comparison.columns) {
    if (!column.noise_percent) continue;
    text += (text.empty() ? " Noise of one training: " : "; ") + escape_html(column.name) + " " +
            number_text(*column.noise_percent, 2) + unit_text(*column.measure);
  }
  return text.empty() ? "" : text + ".";
}

/// What the marks of the table mean.
std::string table_legend(const Comparison& comparison) {
  std::string margins;
  for (const Column& column : comparison.columns) {
    const std::string margin = number_text(column.measure->margin, 3) + unit_text(*column.measure);
    if (margins.find(margin) == std::string::npos)
      margins += (margins.empty() ? "" : ", ") + margin;
  }
  return "<p class=\"legend\">&#9664; lower, &#9654; higher by more than the noise, which is <span "
         "class=\"better\">better</span> or <span class=\"worse\">worse</span>; <span "
         "class=\"noise\">&#9675; inside the noise</span>; <span "
         "class=\"noise\">= equal, all of it within " +
         margins +
         ", the smallest difference that can matter</span>. In brackets the middle 95&thinsp;% "
         "over "
         "seeds and " +
         comparison.measures->data + "; &plusmn; is the standard deviation over seeds." +
         noise_text(comparison) + "</p>\n";
}

/// What the table of a comparison shows, and which way is better.
std::string table_lead(const Comparison& comparison, const std::string& reference) {
  const measure::Measure& measure = comparison.measures->main();
  const std::string reading = measure::reading_text(comparison.reading);
  std::string text =
      measure.title() + " of each method (" +
      (measure.is_ratio ? "geometric mean over seeds" : "mean over seeds") +
      (in_percent(measure.value_unit) ? ", percent)" : ")") +
      (reading.empty() ? "" : ", measured " + reading) +
      (comparison.has_intervals() ? ", and its difference to " + reference + " in " +
                                        (in_percent(measure.unit) ? "percent" : measure.unit) +
                                        " over the seeds that both have. "
                                  : ". One seed can not tell differences. ") +
      (measure.higher_is_better ? "Higher" : "Lower") + " is better.";
  std::set<std::string> remarks;
  for (const Column& column : comparison.columns) {
    const std::string remark = column.measure->remark;
    if (!remark.empty() && remarks.insert(remark).second) text += " " + remark;
  }
  return text;
}

}  // namespace

SectionParts comparison_section(const ReportInput& input) {
  const Comparison& comparison = input.comparison;
  SectionParts parts;
  add_difference_data(comparison, input.methods, parts.tables);
  if (comparison.rows.empty()) return parts;
  const std::string reference = escape_html(comparison.reference);
  std::string content = table(comparison);
  if (comparison.has_intervals()) content += table_legend(comparison);
  for (const auto& [prefix, other] : {std::pair("difference", &comparison.reference),
                                      std::pair("matched", &comparison.matched)}) {
    const std::vector<Chart> charts =
        difference_charts(prefix, *other, comparison, input.methods, parts.tables);
    if (charts.empty()) continue;
    content += "<h3 style=\"margin:1.6rem 0 .8rem\">Difference to " + escape_html(*other) +
               "</h3>\n" + grid(charts);
    parts.charts.insert(parts.charts.end(), charts.begin(), charts.end());
  }
  parts.html = section("Comparison", table_lead(comparison, reference), content);
  return parts;
}

}  // namespace elliptical::report
