// SPDX-License-Identifier: MIT
#include "elliptical/report/sections.h"

#include <algorithm>
#include <set>

#include "elliptical/report/data_table.h"
#include "elliptical/report/escape.h"

namespace elliptical::report {
namespace {

constexpr size_t kMaxRows = 100, kMaxProblems = 200, kMaxHeadlines = 6;

std::string figure(const Chart& chart, const std::string& controls = "") {
  const std::string id = escape_html(chart.id), title = escape_html(chart.title),
                    text = escape_html(chart.text);
  const std::string spoken =
      title + (text.empty() ? "" : ". " + text) + " The table below has the data.";
  return "<figure data-chart=\"" + id + "\">\n<figcaption><h3>" + title + "</h3>" + text +
         "</figcaption>\n" + controls + "<div class=\"plot\" id=\"plot-" + id +
         "\" role=\"img\" aria-label=\"" + spoken +
         "\"></div>\n<details class=\"data\" data-table=\"" + id +
         "\"><summary>Data</summary></details>\n</figure>\n";
}

std::string grid(const std::vector<Chart>& charts) {
  std::string html = "<div class=\"grid\">\n";
  for (const Chart& chart : charts) html += figure(chart);
  return html + "</div>\n";
}

std::string selector(const std::string& name,
                     const std::string& text,
                     const std::string& options = "") {
  return "<label>" + text + " <select id=\"select-" + name + "\">" + options +
         "</select></label>\n";
}

std::string section(const std::string& title, const std::string& lead, const std::string& content) {
  return "<section>\n<h2>" + title + "</h2>\n<p class=\"lead\">" + lead + "</p>\n" + content +
         "</section>\n";
}

/// With a real minus sign and always a sign.
std::string percent_text(double percent) {
  std::string text = number_text(percent, 3);
  if (text.front() == '-') return "&minus;" + text.substr(1);
  return (percent > 0 ? "+" : "") + text;
}

/// The mark points to where the difference lies, the colour says whether that is better.
std::string difference_text(const Difference& difference, const measure::Measure& measure) {
  const Verdict verdict = verdict_of(difference, measure);
  if (verdict == Verdict::kOneSeed) return "<span class=\"noise\">&ndash;</span>";
  const bool outside = verdict == Verdict::kOutside;
  const char* css = !outside ? "noise" : measure.is_gain(difference.percent) ? "better" : "worse";
  const char* mark = verdict == Verdict::kWithin ? "&#9675;"
                     : !outside                  ? "="
                     : difference.percent < 0    ? "&#9664;"
                                                 : "&#9654;";
  return std::string("<span class=\"") + css + "\">" + mark + " " +
         percent_text(difference.percent) + " [" + percent_text(difference.interval->low) + ", " +
         percent_text(difference.interval->high) + "]</span>";
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
  html += cell->to_reference ? difference_text(*cell->to_reference, measure) : "&ndash;";
  if (cell->to_matched) {
    html += "<span class=\"second\">to " + escape_html(comparison.matched) + ": " +
            difference_text(*cell->to_matched, measure) + "</span>";
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

std::string counted(size_t count, const std::string& noun) {
  const auto value = static_cast<double>(count);
  return number_text(value, std::to_string(count).size()) + " " + noun + (count == 1 ? "" : "s");
}

std::string problems_box(const std::vector<std::string>& problems) {
  if (problems.empty()) return "";
  std::string html = "<div class=\"box\" role=\"note\"><b>" + counted(problems.size(), "thing") +
                     " to know about these runs</b>\n<ul>\n";
  for (size_t i = 0; i < std::min(problems.size(), kMaxProblems); ++i) {
    html += "<li>" + escape_html(problems[i]) + "</li>\n";
  }
  if (problems.size() > kMaxProblems) {
    html += "<li>and " + std::to_string(problems.size() - kMaxProblems) + " more</li>\n";
  }
  return html + "</ul></div>\n";
}

std::string smoke_box() {
  return std::string("<div class=\"box\" role=\"note\"><b>") + kSmokeBanner + "</b></div>\n";
}

std::string headline_section(const Comparison& comparison) {
  const std::vector<std::string> sentences = in_words(comparison);
  if (sentences.empty()) return "";
  const auto list = [&](size_t begin, size_t end) {
    std::string html = "<ul class=\"headlines\">\n";
    for (size_t i = begin; i < end; ++i) html += "<li>" + escape_html(sentences[i]) + "</li>\n";
    return html + "</ul>\n";
  };
  const size_t num_shown = std::min(sentences.size(), kMaxHeadlines);
  std::string html = "<section aria-label=\"In words\">\n" + list(0, num_shown);
  if (num_shown < sentences.size()) {
    html += "<details><summary>" + counted(sentences.size() - num_shown, "more sentence") +
            "</summary>\n" + list(num_shown, sentences.size()) + "</details>\n";
  }
  return html + "</section>\n";
}

std::string comparison_section(const Comparison& comparison, const ChartGroups& charts) {
  if (comparison.rows.empty()) return "";
  const std::string reference = escape_html(comparison.reference);
  std::string content = table(comparison);
  if (comparison.has_intervals()) content += table_legend(comparison);
  if (!charts.differences.empty()) {
    content += "<h3 style=\"margin:1.6rem 0 .8rem\">Difference to " + reference + "</h3>\n" +
               grid(charts.differences);
  }
  if (!charts.to_matched.empty()) {
    content += "<h3 style=\"margin:1.6rem 0 .8rem\">Difference to " +
               escape_html(comparison.matched) + "</h3>\n" + grid(charts.to_matched);
  }
  return section("Comparison", table_lead(comparison, reference), content);
}

std::string chart_section(const std::string& title,
                          const std::string& lead,
                          const std::vector<Chart>& charts,
                          const std::string& controls) {
  return charts.empty() ? "" : section(title, lead, controls + grid(charts));
}

std::string attacked_section() {
  return section("Attacked pictures",
                 "Before and after an attack, and the difference, magnified: grey is no change. "
                 "Pictures whose class changed come first; a tick marks the right class.",
                 "<div class=\"controls\">" + selector("attacked", "Run") +
                     "</div>\n<div id=\"attacked\"></div>\n");
}

std::string corruption_section(const Comparison& comparison, const std::vector<Chart>& charts) {
  if (charts.empty()) return "";
  std::string content = "<div class=\"grid\">\n";
  for (const Chart& chart : charts) {
    content += figure(chart, chart.id != "severities"
                                 ? ""
                                 : "<div class=\"controls\">" +
                                       selector("corruption", "Corruption") + "</div>\n");
  }
  return section("Corruptions",
                 comparison.measures->main().title() + " on " + comparison.measures->data +
                     " that were damaged without malice.",
                 content + "</div>\n");
}

std::string loss_section(const std::vector<Chart>& charts) {
  if (charts.empty()) return "";
  const std::string controls =
      "<div class=\"controls\">" +
      selector("steps", "Steps",
               "<option value=\"all\">all</option><option value=\"half\">last half</option>"
               "<option value=\"tenth\">last tenth</option>") +
      "</div>\n";
  return section("Training", "Loss in nats, per token or per picture.",
                 figure(charts.front(), controls));
}

std::string heat_section() {
  return section(
      "Where the models look",
      "The same picture for each method: what the class token attends to in a layer (of a model "
      "without one: the mean over all patches), and attention rollout, which follows attention "
      "through all layers and counts the residual connection as a half. Each map runs from its "
      "smallest number to its largest. Rollout says where attention goes, not what the model makes "
      "of it.",
      "<div class=\"controls\">" + selector("picture", "Picture") +
          selector("heat-layer", "Layer") + selector("heat-head", "Head") +
          "<span class=\"glow\">least <i></i> most</span></div>\n<div id=\"heat\"></div>\n");
}

std::string head_section(const ChartGroups& charts) {
  if (charts.metric.empty() && charts.snapshots.empty()) return "";
  std::string content = "<div class=\"controls\">" + selector("run", "Run") +
                        selector("layer", "Layer") + selector("head", "Head") +
                        "</div>\n<div class=\"grid\">\n";
  for (const Chart& chart : charts.metric) content += figure(chart);
  for (const Chart& chart : charts.snapshots) {
    const bool ellipse = chart.id == "ellipse";
    content +=
        figure(chart, ellipse ? "<div class=\"controls\">" + selector("query", "Query") +
                                    selector("x", "Across") + selector("y", "Up") + "</div>\n"
                              : "");
  }
  return section("Inside the heads",
                 "The metric says how much each coordinate of a head counts: a ball of equal "
                 "attention around a query "
                 "becomes an ellipse, short where the metric is large.",
                 content + "</div>\n");
}

std::string number_section(size_t num_listed, size_t num_all) {
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

}  // namespace elliptical::report
