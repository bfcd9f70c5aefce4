// SPDX-License-Identifier: MIT
//
// The charts of robustness.h. Colour is the method, dashes say that attacks did not see through
// the metric, thin rules are ranges over seeds.
#include <algorithm>
#include <map>

#include "elliptical/report/charts_impl.h"
#include "elliptical/report/robustness.h"

namespace elliptical::report {
namespace {

using nlohmann::json;

/// "accuracy, %"
std::string axis_of(const measure::Measure& measure) {
  const std::string unit = measure.value_unit;
  return measure.name + (unit.empty() ? "" : ", " + unit);
}

/// A specification in which the texts that `values` name are others.
json filled(const char* text, const std::map<std::string, std::string>& values) {
  json spec = json::parse(text).flatten();
  for (json& leaf : spec) {
    if (const auto* name = leaf.get_ptr<const std::string*>(); name != nullptr) {
      if (const auto value = values.find(*name); value != values.end()) leaf = value->second;
    }
  }
  return spec.unflatten();
}

void add_colour(const std::vector<std::string>& methods, const DataTable& table, json& spec) {
  for (json& layer : spec["layer"]) {
    layer["encoding"]["color"] = method_colour(methods, &table);
  }
}

json attack_spec(const std::vector<std::string>& methods,
                 const measure::Measure& measure,
                 const DataTable& table,
                 const std::string& profile) {
  json spec = filled(R"json({
    "width": "container", "height": 260, "data": {"name": "attacks"},
    "encoding": {"x": {"field": "eps", "type": "quantitative", "axis": {"grid": false}}},
    "layer": [
      {"transform": [{"filter": {"field": "low", "valid": true}}], "mark": {"type": "rule", "strokeWidth": 1},
       "encoding": {"y": {"field": "low", "type": "quantitative"}, "y2": {"field": "high"}}},
      {"mark": {"type": "line", "strokeWidth": 1.6},
       "encoding": {
         "y": {"field": "$measure", "type": "quantitative", "title": "$axis"},
         "strokeDash": {"field": "metric_gradient", "type": "nominal",
                        "scale": {"domain": ["through", "detached"], "range": [[1, 0], [5, 3]]}}}},
      {"mark": {"type": "point", "filled": true, "size": 40, "opacity": 1},
       "encoding": {
         "y": {"field": "$measure", "type": "quantitative"},
         "tooltip": [{"field": "method"}, {"field": "metric_gradient", "title": "gradient of the metric"},
                     {"field": "eps", "title": "eps, 255ths"}, {"field": "$measure"}, {"field": "low"},
                     {"field": "high"}, {"field": "seeds"}, {"field": "pictures"}]}}]})json",
                     {{"$measure", measure.name}, {"$axis", axis_of(measure)}});
  spec["encoding"]["x"]["title"] =
      profile == "strict" ? "eps, 255ths" : "eps, 255ths, of normalized pixels";
  json& legend = spec["layer"][1]["encoding"]["strokeDash"]["legend"];
  if (!table.rows_where("metric_gradient", "detached").empty()) {
    legend = {{"orient", "bottom"},
              {"title", "gradient of the metric"},
              {"symbolStrokeColor", "var(--ink)"}};
  }
  add_colour(methods, table, spec);
  return spec;
}

json corruption_spec(const std::vector<std::string>& methods,
                     const measure::Measure& measure,
                     const DataTable& table) {
  json spec = filled(R"json({
    "width": "container", "height": {"step": 24, "for": "position"}, "data": {"name": "corruptions"},
    "encoding": {
      "y": {"field": "corruption", "type": "nominal", "title": null,
            "axis": {"domain": false, "ticks": false, "labelLimit": 150, "grid": true}},
      "yOffset": {"field": "method", "type": "nominal", "scale": {"paddingInner": 0.2, "paddingOuter": 1}}},
    "layer": [
      {"transform": [{"filter": {"field": "low", "valid": true}}], "mark": {"type": "rule", "strokeWidth": 1},
       "encoding": {"x": {"field": "low", "type": "quantitative"}, "x2": {"field": "high"}}},
      {"mark": {"type": "point", "filled": true, "size": 45, "opacity": 1},
       "encoding": {
         "x": {"field": "$measure", "type": "quantitative", "title": "$axis", "scale": {"zero": false, "nice": true}},
         "tooltip": [{"field": "corruption"}, {"field": "method"}, {"field": "$measure"}, {"field": "low"},
                     {"field": "high"}, {"field": "seeds"}, {"field": "severities"}]}}]})json",
                     {{"$measure", measure.name}, {"$axis", axis_of(measure)}});
  spec["encoding"]["yOffset"]["scale"]["domain"] = methods;
  add_colour(methods, table, spec);
  return spec;
}

/// The page hands over the rows of the selected corruption.
json severity_spec(const std::vector<std::string>& methods,
                   const measure::Measure& measure,
                   const DataTable& table) {
  json spec = filled(R"json({
    "width": "container", "height": 260, "data": {"name": "selected_severities"},
    "encoding": {"x": {"field": "severity", "type": "ordinal", "title": "severity",
                       "axis": {"labelAngle": 0, "grid": false}}},
    "layer": [
      {"transform": [{"filter": {"field": "low", "valid": true}}], "mark": {"type": "rule", "strokeWidth": 1},
       "encoding": {"y": {"field": "low", "type": "quantitative"}, "y2": {"field": "high"}}},
      {"mark": {"type": "line", "strokeWidth": 1.6, "point": {"size": 40}},
       "encoding": {
         "y": {"field": "$measure", "type": "quantitative", "title": "$axis", "scale": {"zero": false, "nice": true}},
         "tooltip": [{"field": "corruption"}, {"field": "method"}, {"field": "severity"}, {"field": "$measure"},
                     {"field": "low"}, {"field": "high"}, {"field": "seeds"}]}}]})json",
                     {{"$measure", measure.name}, {"$axis", axis_of(measure)}});
  add_colour(methods, table, spec);
  return spec;
}

json error_spec(const std::vector<std::string>& methods, const std::string& axis) {
  json spec = filled(R"json({
    "width": "container", "height": {"step": 26}, "data": {"name": "corruption_errors"},
    "encoding": {"y": {"field": "method", "type": "nominal", "title": null,
                       "axis": {"domain": false, "ticks": false, "labelLimit": 170}}},
    "layer": [
      {"transform": [{"filter": {"field": "low", "valid": true}}], "mark": {"type": "rule", "strokeWidth": 1},
       "encoding": {"x": {"field": "low", "type": "quantitative"}, "x2": {"field": "high"}}},
      {"mark": {"type": "point", "filled": true, "size": 80, "opacity": 1},
       "encoding": {
         "x": {"field": "error", "type": "quantitative", "title": "$axis",
               "scale": {"zero": false, "nice": true}},
         "tooltip": [{"field": "method"}, {"field": "error"}, {"field": "low"}, {"field": "high"},
                     {"field": "seeds"}]}}]})json",
                     {{"$axis", axis}});
  spec["encoding"]["y"]["sort"] = methods;
  for (json& layer : spec["layer"]) layer["encoding"]["color"] = method_colour(methods, nullptr);
  return spec;
}

/// Whether all points of a chart are of the same number of pictures.
bool is_of_same_pictures(const DataTable& table, const json& attack, const json& profile) {
  json pictures;
  for (size_t row = 0; row < table.size(); ++row) {
    if (table.at(row, "attack") != attack || table.at(row, "profile") != profile) continue;
    if (!pictures.is_null() && table.at(row, "pictures") != pictures) return false;
    pictures = table.at(row, "pictures");
  }
  return true;
}

}  // namespace

std::vector<Chart> attack_charts(const std::vector<std::string>& methods,
                                 const measure::TaskMeasures& measures,
                                 const ChartData& data) {
  std::vector<Chart> charts;
  const DataTable& table = data.at("attacks");
  for (size_t row = 0; row < table.size(); ++row) {
    const auto attack = table.at(row, "attack").get<std::string>(),
               profile = table.at(row, "profile").get<std::string>();
    const std::string title = attack + ", " + profile;
    if (!charts.empty() && charts.back().title == title) continue;  // rows are sorted
    std::string text = "Mean over seeds; thin rules: range over seeds.";
    if (!is_of_same_pictures(table, attack, profile)) {
      text += " Not all points are of the same number of pictures, see the table.";
    }
    charts.push_back({.id = "attack-" + std::to_string(charts.size()),
                      .title = title,
                      .text = text,
                      .tables = {"attacks"},
                      .spec = attack_spec(methods, measures.main(), table, profile),
                      .where = {{"attack", attack}, {"profile", profile}}});
  }
  return charts;
}

std::vector<Chart> corruption_charts(const std::vector<std::string>& methods,
                                     const measure::TaskMeasures& measures,
                                     const ChartData& data) {
  std::vector<Chart> charts;
  if (const DataTable& table = data.at("corruptions"); !table.empty()) {
    charts.push_back({.id = "corruptions",
                      .title = measures.main().title() + " of each corruption",
                      .text = "Mean over the severities that all runs have, and over seeds; thin "
                              "rules: range over seeds.",
                      .tables = {"corruptions"},
                      .spec = corruption_spec(methods, measures.main(), table)});
  }
  if (const DataTable& table = data.at("severities"); !table.empty()) {
    charts.push_back({.id = "severities",
                      .title = measures.main().title() + " over severity",
                      .text = "Mean over seeds; thin rules: range over seeds.",
                      .tables = {"selected_severities"},
                      .spec = severity_spec(methods, measures.main(), table)});
  }
  const DataTable& errors = data.at("corruption_errors");
  for (const auto& [metric, title] : measures.robustness.errors) {
    if (errors.rows_where("metric", metric).empty()) continue;
    charts.push_back({.id = metric,
                      .title = title,
                      .text = "Lower is better; thin rules: range over seeds.",
                      .tables = {"corruption_errors"},
                      .spec = error_spec(methods, measures.robustness.error_axis),
                      .where = {{"metric", metric}}});
  }
  return charts;
}

}  // namespace elliptical::report
