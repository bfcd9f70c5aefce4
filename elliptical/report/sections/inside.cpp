// SPDX-License-Identifier: MIT
//
// Where models look, and the metric of their heads. Heat maps and snapshots share the bytes that
// a page may have.
#include <algorithm>

#include "elliptical/report/charts_impl.h"
#include "elliptical/report/escape.h"
#include "elliptical/report/heat_maps.h"
#include "elliptical/report/section.h"
#include "elliptical/report/section_html.h"
#include "elliptical/report/snapshots.h"

namespace elliptical::report {
namespace {

/// The page draws its maps.
std::string heat_section() {
  return section(
      "Where the models look",
      "The same picture for each method: what the class token attends to in a layer (of a model "
      "without one: the mean over all patches), and attention rollout, which follows attention "
      "through all layers and counts the residual connection as a half. Each map runs from its "
      "smallest number to its largest. Rollout says where attention goes, not what the model makes "
      "of it.",
      controls(selector("picture", "Picture") + selector("heat-layer", "Layer") +
               selector("heat-head", "Head") + "<span class=\"glow\">least <i></i> most</span>") +
          "<div id=\"heat\"></div>\n");
}

std::string head_section(const std::vector<Chart>& charts) {
  if (charts.empty()) return "";
  std::string content =
      controls(selector("run", "Run") + selector("layer", "Layer") + selector("head", "Head")) +
      "<div class=\"grid\">\n";
  for (const Chart& chart : charts) {
    const bool ellipse = chart.id == "ellipse";
    content += figure(chart, ellipse ? controls(selector("query", "Query") +
                                                selector("x", "Across") + selector("y", "Up"))
                                     : "");
  }
  return section("Inside the heads",
                 "The metric says how much each coordinate of a head counts: a ball of equal "
                 "attention around a query "
                 "becomes an ellipse, short where the metric is large.",
                 content + "</div>\n");
}

}  // namespace

SectionParts inside_section(const ReportInput& input) {
  SectionParts parts;
  add_metric_data(input.runs, input.chosen, parts.tables);
  const nlohmann::json heat = read_heat_maps(input.runs, input.first_runs, parts.problems);
  const size_t taken = std::min(kSnapshotBytes / 2, json_in_script(heat).size());
  const nlohmann::json snapshots =
      read_snapshots(input.runs, input.first_runs, parts.problems, kSnapshotBytes - taken);
  parts.charts = metric_charts(input.methods, parts.tables);
  if (!snapshots.empty()) {
    const std::vector<Chart> more = snapshot_charts();
    parts.charts.insert(parts.charts.end(), more.begin(), more.end());
  }
  if (!heat["runs"].empty()) parts.html = heat_section();
  parts.html += head_section(parts.charts);
  parts.data = {{"heat", heat}, {"snapshots", snapshots}};
  return parts;
}

}  // namespace elliptical::report
