// SPDX-License-Identifier: MIT
#include "elliptical/report/section_html.h"

#include <algorithm>

#include "elliptical/report/comparison.h"
#include "elliptical/report/data_table.h"
#include "elliptical/report/escape.h"

namespace elliptical::report {
namespace {

constexpr size_t kMaxProblems = 200;

}  // namespace

std::string counted(size_t count, const std::string& noun) {
  const auto value = static_cast<double>(count);
  return number_text(value, std::to_string(count).size()) + " " + noun + (count == 1 ? "" : "s");
}

std::string figure(const Chart& chart, const std::string& controls) {
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

std::string selector(const std::string& name, const std::string& text, const std::string& options) {
  return "<label>" + text + " <select id=\"select-" + name + "\">" + options +
         "</select></label>\n";
}

std::string section(const std::string& title, const std::string& lead, const std::string& content) {
  return "<section>\n<h2>" + title + "</h2>\n<p class=\"lead\">" + lead + "</p>\n" + content +
         "</section>\n";
}

std::string controls(const std::string& selectors) {
  return "<div class=\"controls\">" + selectors + "</div>\n";
}

std::string chart_section(const std::string& title,
                          const std::string& lead,
                          const std::vector<Chart>& charts) {
  return charts.empty() ? "" : section(title, lead, grid(charts));
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

}  // namespace elliptical::report
