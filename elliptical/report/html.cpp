// SPDX-License-Identifier: MIT
#include "elliptical/report/html.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "elliptical/base/names.h"
#include "elliptical/base/sha256.h"
#include "elliptical/report/chart_data.h"
#include "elliptical/report/escape.h"
#include "elliptical/report/section.h"
#include "elliptical/report/section_html.h"
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
  ReportInput input{.runs = runs,
                    .comparison = comparison,
                    .bench = options.bench,
                    .methods = drawn_methods(comparison, runs)};
  input.chosen = chosen_runs(runs, input.methods);
  input.first_runs = first_runs(runs, input.methods);
  if (input.methods.size() == kMaxMethods && comparison.rows.size() > kMaxMethods) {
    problems.push_back("charts: " + std::to_string(kMaxMethods) +
                       " methods at most are drawn, there are " +
                       std::to_string(comparison.rows.size()) + " (the table has more of them)");
  }

  json data = {{"charts", json::object()}, {"runs", runs_json(runs)}, {"tables", json::object()}};
  std::string sections;
  for (const SectionEntry& entry : section_table()) {
    const SectionParts parts = entry.make(input);
    sections += parts.html;
    add_charts(parts.charts, data["charts"]);
    for (const auto& [name, table] : parts.tables) data["tables"][name] = table.to_json();
    for (const auto& [name, value] : parts.data) data[name] = value;
    for (const std::string& problem : parts.problems) add_once(problem, problems);
  }
  const bool has_smoke = std::any_of(runs.begin(), runs.end(), is_smoke);
  const std::string body = (has_smoke ? smoke_box() : "") + problems_box(problems) + sections;

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
