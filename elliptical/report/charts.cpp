// SPDX-License-Identifier: MIT
#include "elliptical/report/charts.h"

#include <algorithm>

#include "elliptical/report/charts_impl.h"

namespace elliptical::report {
namespace {

using nlohmann::json;

json method_axis(const std::vector<std::string>& methods) {
  json y = json::parse(R"json({"field": "method", "type": "nominal", "title": null,
                           "axis": {"domain": false, "ticks": false, "labelLimit": 170}})json");
  y["sort"] = methods;
  return y;
}

bool has_measure(const DataTable& table, const std::string& name) {
  return !table.rows_where("measure", name).empty();
}

/// Points with intervals around a line at zero. Inside or outside of the noise is told by colour
/// and shape; triangles point away from zero.
json difference_spec(const measure::Measure& measure, const std::vector<std::string>& methods) {
  json spec = json::parse(R"json({
    "width": "container", "height": {"step": 26},
    "layer": [
      {"data": {"values": [{}]}, "mark": {"type": "rule", "color": "var(--ink)", "strokeWidth": 1},
       "encoding": {"x": {"datum": 0, "type": "quantitative"}}},
      {"data": {"name": "differences"}, "mark": {"type": "rule", "strokeWidth": 2.5},
       "encoding": {"x": {"field": "low", "type": "quantitative"}, "x2": {"field": "high"}}},
      {"data": {"name": "differences"}, "mark": {"type": "point", "filled": true, "size": 95, "opacity": 1},
       "encoding": {
         "x": {"field": "percent", "type": "quantitative",
               "scale": {"zero": true, "nice": false, "padding": 12}},
         "tooltip": [{"field": "method"}, {"field": "percent", "title": "difference"},
                     {"field": "low"}, {"field": "high"}, {"field": "verdict"}, {"field": "seeds"}]}}]})json");
  const json verdicts = {"better", "inside the noise",        "worse", "one seed",
                         "equal",  to_string(Verdict::kSmall)};
  json colour = {{"field", "verdict"}, {"type", "nominal"}, {"legend", nullptr}};
  colour["scale"] = {{"domain", verdicts},
                     {"range",
                      {"var(--better)", "var(--noise)", "var(--worse)", "var(--noise)",
                       "var(--noise)", "var(--noise)"}}};
  json shape = {{"field", "verdict"}, {"type", "nominal"}, {"legend", nullptr}};
  const bool higher = measure.higher_is_better;
  shape["scale"] = {{"domain", verdicts},
                    {"range",
                     {higher ? "triangle-right" : "triangle-left", "circle",
                      higher ? "triangle-left" : "triangle-right", "diamond", "square", "square"}}};
  for (const size_t layer : {1, 2}) {
    json& part = spec["layer"][layer];
    part["encoding"]["color"] = colour;
    part["encoding"]["y"] = method_axis(methods);
  }
  spec["layer"][2]["encoding"]["shape"] = shape;
  spec["layer"][2]["encoding"]["x"]["title"] =
      std::string("difference of ") + measure.name + ", " + measure.unit;
  return spec;
}

/// Every seed, the mean and one standard deviation.
json value_spec(const measure::Measure& measure, const std::vector<std::string>& methods) {
  json spec = json::parse(R"json({
    "width": "container", "height": {"step": 26},
    "layer": [
      {"data": {"name": "values"}, "mark": {"type": "tick", "thickness": 1.5, "size": 12, "opacity": 0.55}},
      {"data": {"name": "means"}, "mark": {"type": "rule", "strokeWidth": 2},
       "encoding": {"x": {"field": "low", "type": "quantitative"}, "x2": {"field": "high"}}},
      {"data": {"name": "means"}, "mark": {"type": "point", "filled": true, "size": 80, "opacity": 1}}]})json");
  for (json& layer : spec["layer"]) {
    json& encoding = layer["encoding"];
    encoding["y"] = method_axis(methods);
    encoding["color"] = method_colour(methods, nullptr);
    if (!encoding.contains("x")) {
      encoding["x"] = {{"field", "value"}, {"type", "quantitative"}, {"title", measure.name}};
      encoding["tooltip"] = json::array({{{"field", "method"}}, {{"field", "value"}}});
    }
    encoding["x"]["scale"] = {{"zero", false}, {"nice", true}};
  }
  return spec;
}

json pair_spec(const Comparison& comparison,
               const std::vector<std::string>& methods,
               const DataTable& means) {
  json spec = json::parse(R"json({
    "width": "container", "height": 300,
    "layer": [
      {"data": {"name": "pairs"}, "mark": {"type": "point", "filled": true, "size": 22, "opacity": 0.55},
       "encoding": {"x": {"field": "clean", "type": "quantitative"},
                    "y": {"field": "damaged", "type": "quantitative"},
                    "tooltip": [{"field": "method"}, {"field": "seed"}, {"field": "clean"}, {"field": "damaged"}]}},
      {"data": {"name": "pair_means"}, "mark": {"type": "rule", "strokeWidth": 1.8},
       "encoding": {"x": {"field": "clean_low", "type": "quantitative"}, "x2": {"field": "clean_high"},
                    "y": {"field": "damaged", "type": "quantitative"}}},
      {"data": {"name": "pair_means"}, "mark": {"type": "rule", "strokeWidth": 1.8},
       "encoding": {"x": {"field": "clean", "type": "quantitative"},
                    "y": {"field": "damaged_low", "type": "quantitative"}, "y2": {"field": "damaged_high"}}},
      {"data": {"name": "pair_means"}, "mark": {"type": "point", "filled": true, "size": 95, "opacity": 1},
       "encoding": {"x": {"field": "clean", "type": "quantitative"},
                    "y": {"field": "damaged", "type": "quantitative"},
                    "tooltip": [{"field": "method"}, {"field": "clean"}, {"field": "damaged"}]}}]})json");
  json& axes = spec["layer"][3]["encoding"];
  const std::string name = comparison.measures->main().name, data = comparison.measures->data;
  axes["x"]["title"] = name + ", clean " + data;
  axes["y"]["title"] = name + ", " + comparison.damaged() + " " + data;
  for (json& layer : spec["layer"]) {
    layer["encoding"]["color"] = method_colour(methods, &means);
    for (const char* axis : {"x", "y"}) {
      layer["encoding"][axis]["scale"] = {{"zero", false}, {"nice", true}};
    }
  }
  return spec;
}

json loss_spec(const std::vector<std::string>& methods, const DataTable& losses, bool has_bands) {
  json spec = json::parse(R"json({
    "width": "container", "height": 340, "data": {"name": "losses"},
    "encoding": {"x": {"field": "step", "type": "quantitative", "title": "training step", "axis": {"grid": false}}},
    "layer": [
      {"transform": [{"filter": {"field": "low", "valid": true}}], "mark": {"type": "area", "opacity": 0.16},
       "encoding": {"y": {"field": "low", "type": "quantitative"}, "y2": {"field": "high"},
                    "detail": [{"field": "line"}, {"field": "kind"}]}},
      {"mark": {"type": "line", "strokeWidth": 1.6},
       "encoding": {
         "y": {"field": "value", "type": "quantitative", "title": "loss, nats",
               "scale": {"zero": false}},
         "strokeDash": {"field": "kind", "type": "nominal",
                        "scale": {"domain": ["training", "validation"], "range": [[1, 0], [5, 3]]},
                        "legend": {"orient": "top", "title": null, "symbolStrokeColor": "var(--ink)"}},
         "detail": {"field": "line"}}},
      {"transform": [{"filter": {"field": "kind", "equal": "validation"}}],
       "mark": {"type": "point", "filled": true, "size": 26, "opacity": 1},
       "encoding": {"y": {"field": "value", "type": "quantitative"},
                    "tooltip": [{"field": "method"}, {"field": "kind"}, {"field": "step"},
                                {"field": "value", "title": "nats"}]}}]})json");
  for (json& layer : spec["layer"]) layer["encoding"]["color"] = method_colour(methods, &losses);
  if (!has_bands) spec["layer"].erase(0);
  return spec;
}

json speed_spec(const std::string& unit, const std::vector<std::string>& methods) {
  json spec = json::parse(R"json({
    "width": "container", "height": {"step": 26}, "data": {"name": "speeds"},
    "encoding": {"x": {"field": "value", "type": "quantitative"}},
    "layer": [
      {"mark": {"type": "bar", "height": 14, "cornerRadiusEnd": 2},
       "encoding": {"tooltip": [{"field": "method"}, {"field": "value"}]}},
      {"mark": {"type": "text", "align": "left", "dx": 5, "color": "var(--ink)"},
       "encoding": {"text": {"field": "value", "type": "quantitative", "format": ",.0f"}}}]})json");
  spec["encoding"]["x"]["title"] = "training, " + unit + " per second";
  spec["encoding"]["y"] = method_axis(methods);
  spec["layer"][0]["encoding"]["color"] = method_colour(methods, nullptr);
  return spec;
}

}  // namespace

json method_colour(const std::vector<std::string>& methods, const DataTable* table) {
  json colour = {{"field", "method"}, {"type", "nominal"}, {"legend", nullptr}};
  colour["scale"] = {{"domain", methods}};
  if (table == nullptr) return colour;
  json named = json::array();
  for (const std::string& method : methods) {
    if (!table->rows_where("method", method).empty()) named.push_back(method);
  }
  if (named.size() <= 12) {
    colour["legend"] = {{"orient", "top"}, {"title", nullptr}, {"columns", "$columns"}};
    colour["legend"]["values"] = named;
  }
  return colour;
}

std::vector<Chart> difference_charts(const std::string& prefix,
                                     const std::string& against,
                                     const Comparison& comparison,
                                     const std::vector<std::string>& methods,
                                     const ChartData& data) {
  std::vector<Chart> charts;
  if (against.empty() || !comparison.has_intervals()) return charts;
  const DataTable& table = data.at("differences");
  for (size_t m = 0; m < comparison.columns.size(); ++m) {
    const std::string& name = comparison.columns[m].name;
    const auto rows = table.rows_where("measure", name);
    if (std::none_of(rows.begin(), rows.end(),
                     [&](size_t row) { return table.at(row, "against") == against; })) {
      continue;
    }
    charts.push_back({.id = prefix + "-" + std::to_string(m),
                      .title = name,
                      .text = "",
                      .tables = {"differences"},
                      .spec = difference_spec(*comparison.columns[m].measure, methods),
                      .where = {{"measure", name}, {"against", against}}});
  }
  return charts;
}

std::vector<Chart> value_charts(const Comparison& comparison,
                                const std::vector<std::string>& methods,
                                const ChartData& data) {
  std::vector<Chart> charts;
  const bool has_pairs = !data.at("pair_means").empty();
  const size_t clean_place = comparison.main_column(measure::Condition::kClean),
               damaged_place = comparison.main_column(measure::Condition::kDamaged);
  if (has_pairs) {
    const bool is_higher_better = comparison.measures->main().higher_is_better;
    charts.push_back(
        {.id = "pairs",
         .title = "Clean against " + comparison.damaged(),
         .text = std::string(is_higher_better ? "Upper right" : "Lower left") +
                 " is better. Small points: seeds; bars: one standard deviation over seeds.",
         .tables = {"pair_means", "pairs"},
         .spec = pair_spec(comparison, methods, data.at("pair_means"))});
  }
  for (size_t m = 0; m < comparison.columns.size(); ++m) {
    const Column& column = comparison.columns[m];
    if (has_pairs && (m == clean_place || m == damaged_place)) continue;
    if (column.has_own_section || !has_measure(data.at("means"), column.name)) continue;
    charts.push_back({.id = "value-" + std::to_string(m),
                      .title = column.name,
                      .text = "Ticks: seeds; bars: one standard deviation over seeds.",
                      .tables = {"means", "values"},
                      .spec = value_spec(*column.measure, methods),
                      .where = {{"measure", column.name}}});
  }
  return charts;
}

std::vector<Chart> loss_charts(const std::vector<std::string>& methods, const ChartData& data) {
  const DataTable& losses = data.at("losses");
  if (losses.empty()) return {};
  bool has_bands = false;
  for (size_t row = 0; row < losses.size(); ++row) has_bands |= !losses.at(row, "low").is_null();
  return {{.id = "losses",
           .title = "Loss while training",
           .text = "Training loss averaged over ranges of steps; validation loss dashed.",
           .tables = {"losses"},
           .spec = loss_spec(methods, losses, has_bands)}};
}

std::vector<Chart> speed_charts(const std::string& unit,
                                const std::vector<std::string>& methods,
                                const ChartData& data) {
  if (data.at("speeds").empty()) return {};
  return {
      {.id = "speeds",
       .title = "Speed of training",
       .text = "Higher is better. Only runs of the same hour on the same machine can be compared.",
       .tables = {"speeds"},
       .spec = speed_spec(unit, methods)}};
}

}  // namespace elliptical::report
