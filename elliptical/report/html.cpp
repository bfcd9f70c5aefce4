// SPDX-License-Identifier: MIT
#include "elliptical/report/html.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "elliptical/base/sha256.h"
#include "elliptical/report/attack_pictures.h"
#include "elliptical/report/chart_data.h"
#include "elliptical/report/charts.h"
#include "elliptical/report/escape.h"
#include "elliptical/report/heat_maps.h"
#include "elliptical/report/number_list.h"
#include "elliptical/report/robustness.h"
#include "elliptical/report/sections.h"
#include "elliptical/report/snapshots.h"
#include "elliptical/report/web_files.h"

namespace elliptical::report {
namespace {

using nlohmann::json;

/// 'sha256-...' as content security policies spell it.
std::string policy_hash(std::string_view script) {
  const std::string hex = sha256_hex(script);
  std::string bytes;
  for (size_t i = 0; i < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return "'sha256-" + base64(bytes) + "'";
}

/// Replaces each {{name}} once, front to back: what is put in is not searched again.
std::string fill(std::string_view text,
                 const std::map<std::string, std::string, std::less<>>& values) {
  std::string result;
  for (size_t open = text.find("{{"); open != text.npos; open = text.find("{{")) {
    const size_t close = text.find("}}", open);
    const auto value = values.find(text.substr(open + 2, close - open - 2));
    if (value == values.end()) throw std::logic_error("report.html: a placeholder has no value");
    result.append(text.substr(0, open)).append(value->second);
    text.remove_prefix(close + 2);
  }
  return result.append(text);
}

void add_charts(const std::vector<Chart>& charts, json& all) {
  for (const Chart& chart : charts) {
    all[chart.id] = {{"spec", chart.spec}, {"tables", chart.tables}, {"where", chart.where}};
  }
}

json runs_json(const std::vector<RunData>& runs) {
  json all = json::array();
  for (const RunData& run : runs) {
    all.push_back({{"method", run.name}, {"seed", run.seed}, {"folder", run.folder.string()}});
  }
  return all;
}

std::string subtitle(const RunCollection& collection, const Comparison& comparison) {
  std::string text = counted(collection.runs.size(), "run");
  if (!comparison.rows.empty()) text += " of " + counted(comparison.rows.size(), "method");
  if (!comparison.task.empty()) text += ", " + comparison.task;
  if (!comparison.data.empty()) text += " on " + comparison.data;
  return escape_html(text);
}

}  // namespace

std::string make_report(const RunCollection& collection,
                        const Comparison& comparison,
                        const ReportOptions& options) {
  std::vector<std::string> problems = collection.problems;
  problems.insert(problems.end(), comparison.problems.begin(), comparison.problems.end());
  problems.insert(problems.end(), comparison.remarks.begin(), comparison.remarks.end());
  const std::vector<RunData>& runs = collection.runs;
  const std::vector<std::string> methods = drawn_methods(comparison, runs);
  if (methods.size() == kMaxMethods && comparison.rows.size() > kMaxMethods) {
    problems.push_back("charts: " + std::to_string(kMaxMethods) +
                       " methods at most are drawn, there are " +
                       std::to_string(comparison.rows.size()) + " (the table has more of them)");
  }
  const std::vector<size_t> chosen = chosen_runs(runs, methods);

  ChartData tables;
  add_comparison_data(comparison, methods, tables);
  add_loss_data(runs, methods, tables, problems);
  add_metric_data(runs, chosen, tables);
  add_robustness_data(runs, methods, *comparison.measures, tables, problems);
  const json heat = read_heat_maps(runs, first_runs(runs, methods), problems);
  const json snapshots =
      read_snapshots(runs, first_runs(runs, methods), problems,
                     kSnapshotBytes - std::min(kSnapshotBytes / 2, json_in_script(heat).size()));
  const json attacked = read_attack_pictures(runs, first_runs(runs, methods), problems);
  ChartGroups charts = make_charts(comparison, methods, tables, !snapshots.empty());
  if (options.bench) {
    charts.costs = variant_charts(*options.bench);
    tables.emplace("variant_times", options.bench->times);
    tables.emplace("variant_memory", options.bench->memory);
  }
  const NumberList numbers = list_numbers(runs);

  json data = {{"attacked", attacked},    {"charts", json::object()}, {"heat", heat},
               {"numbers", numbers.rows}, {"runs", runs_json(runs)},  {"snapshots", snapshots},
               {"tables", json::object()}};
  for (const auto* group : {&charts.differences, &charts.to_matched, &charts.perplexities,
                            &charts.losses, &charts.speeds, &charts.attacks, &charts.corruptions,
                            &charts.costs, &charts.metric, &charts.snapshots}) {
    add_charts(*group, data["charts"]);
  }
  for (const auto& [name, table] : tables) data["tables"][name] = table.to_json();

  std::string body;
  if (std::any_of(runs.begin(), runs.end(), is_smoke)) body += smoke_box();
  body += problems_box(problems);
  if (!runs.empty()) {
    body += headline_section(comparison);
    body += comparison_section(comparison, charts);
    const measure::TaskMeasures& measures = *comparison.measures;
    const std::string damaged = comparison.perturbation == nullptr
                                    ? ""
                                    : std::string(" and ") + comparison.perturbation->damaged;
    body +=
        chart_section("Clean" + damaged + " " + measures.data, measures.lead, charts.perplexities);
    body +=
        chart_section("Attacks",
                      measures.main().title() +
                          " over eps, the largest change of a number of a picture; at 0 "
                          "nothing is changed. What is left is an upper bound: a stronger attack "
                          "can only lower it.",
                      charts.attacks);
    if (!attacked.empty()) body += attacked_section();
    body += corruption_section(comparison, charts.corruptions);
    body += loss_section(charts.losses);
    body += chart_section("Speed", "Measured while training.", charts.speeds);
  }
  if (options.bench) {
    body += chart_section("What attention variants cost",
                          "Measured by `elliptical bench --what variants` on " +
                              escape_html(options.bench->machine) + ".",
                          charts.costs);
  }
  if (!runs.empty()) {
    if (!heat["runs"].empty()) body += heat_section();
    body += head_section(charts);
    body += number_section(numbers.rows.size(), numbers.num_all);
  }

  const WebFiles& files = web_files();
  std::string scripts, hashes;
  for (const std::string_view script :
       {files.vega, files.vega_lite, files.vega_embed, files.pictures, files.heat_maps,
        files.snapshots, files.script}) {
    scripts.append("<script>").append(script).append("</script>\n");
    hashes += " " + policy_hash(script);
  }
  return fill(files.page, {{"body", body},
                           {"command", escape_html(options.command)},
                           {"data", json_in_script(data)},
                           {"licences", std::string(files.licences)},
                           {"num_runs", counted(runs.size(), "run")},
                           {"policy", "default-src 'none'; script-src" + hashes +
                                          "; style-src 'unsafe-inline'; img-src data: blob:; "
                                          "base-uri 'none'; form-action 'none'"},
                           {"scripts", scripts},
                           {"style", std::string(files.style)},
                           {"subtitle", subtitle(collection, comparison)},
                           {"title", escape_html(options.title)},
                           {"version", escape_html(options.version)}});
}

}  // namespace elliptical::report
