// SPDX-License-Identifier: MIT
//
// Charts of what single heads do: their metric, the ellipse around a query, maps of attention.
// Tables whose names start with "selected_" are made by the page from what is selected.
#include "elliptical/report/charts_impl.h"

namespace elliptical::report {
namespace {

using nlohmann::json;

json heads_spec() {
  return json::parse(R"json({
    "width": "container", "height": {"step": 34}, "data": {"name": "selected_heads"},
    "encoding": {
      "x": {"field": "head", "type": "ordinal", "title": "head", "axis": {"labelAngle": 0, "domain": false, "ticks": false}},
      "y": {"field": "layer", "type": "ordinal", "title": "layer", "axis": {"domain": false, "ticks": false}},
      "tooltip": [{"field": "layer"}, {"field": "head"}, {"field": "text", "title": "mean"},
                  {"field": "anisotropy"}]},
    "layer": [
      {"mark": {"type": "rect", "cursor": "pointer", "invalid": null},
       "encoding": {
         "color": {"field": "mean", "type": "quantitative", "title": "mean of the metric",
                   "scale": {"range": ["var(--heat-0)", "var(--heat-1)", "var(--heat-2)", "var(--heat-3)"], "zero": false},
                   "legend": {"orient": "top", "gradientLength": 160, "gradientThickness": 8}},
         "stroke": {"condition": {"test": "datum.selected", "value": "var(--worse)"}, "value": "var(--paper)"},
         "strokeWidth": {"condition": {"test": "datum.selected", "value": 3}, "value": 1}}},
      {"mark": {"type": "text", "fontSize": 10, "cursor": "pointer"},
       "encoding": {"text": {"field": "label"},
                    "color": {"condition": {"test": "datum.dark", "value": "var(--heat-text-high)"},
                              "value": "var(--heat-text-low)"}}}]})json");
}

json profile_spec() {
  return json::parse(R"json({
    "width": "container", "height": 190, "data": {"name": "selected_profile"},
    "layer": [
      {"mark": {"type": "bar", "color": "var(--c1)", "binSpacing": 0},
       "encoding": {
         "x": {"field": "coordinate", "type": "ordinal", "title": "coordinate of the head",
               "axis": {"labelAngle": 0, "labelOverlap": true, "ticks": false}},
         "y": {"field": "value", "type": "quantitative", "title": "mean of the metric"},
         "tooltip": [{"field": "coordinate"}, {"field": "value"}]}},
      {"mark": {"type": "rule", "color": "var(--ink)", "strokeDash": [3, 3]},
       "encoding": {"y": {"aggregate": "mean", "field": "value", "type": "quantitative"}}}]})json");
}

json drift_spec(const std::vector<std::string>& methods, const DataTable& drift) {
  json spec = json::parse(R"json({
    "width": "container", "height": 220, "data": {"name": "drift"},
    "mark": {"type": "line", "strokeWidth": 1.6, "point": {"size": 14}},
    "encoding": {
      "x": {"field": "step", "type": "quantitative", "title": "training step", "axis": {"grid": false}},
      "y": {"field": "value", "type": "quantitative", "title": "mean of the metric", "scale": {"zero": false}},
      "detail": {"field": "line"},
      "tooltip": [{"field": "method"}, {"field": "step"}, {"field": "value"}]}})json");
  spec["encoding"]["color"] = method_colour(methods, &drift);
  return spec;
}

json head_drift_spec() {
  return json::parse(R"json({
    "width": "container", "height": 220, "data": {"name": "selected_head_drift"},
    "mark": {"type": "line"},
    "encoding": {
      "x": {"field": "step", "type": "quantitative", "title": "training step", "axis": {"grid": false}},
      "y": {"field": "value", "type": "quantitative", "title": "mean of the metric", "scale": {"zero": false}},
      "color": {"field": "layer", "type": "quantitative", "title": "layer",
                "scale": {"range": ["var(--line-0)", "var(--line-1)"]},
                "legend": {"orient": "top", "gradientLength": 120, "gradientThickness": 8, "tickMinStep": 1}},
      "opacity": {"condition": {"test": "datum.selected", "value": 1}, "value": 0.5},
      "strokeWidth": {"condition": {"test": "datum.selected", "value": 3}, "value": 1.2},
      "detail": [{"field": "head"}, {"field": "selected"}],
      "tooltip": [{"field": "layer"}, {"field": "head"}, {"field": "step"}, {"field": "value"}]}})json");
}

json ellipse_spec() {
  return json::parse(R"json({
    "width": "$size", "height": "$size",
    "encoding": {
      "x": {"field": "x", "type": "quantitative", "title": "$x_title", "scale": {"domain": "$x_domain", "nice": false}},
      "y": {"field": "y", "type": "quantitative", "title": "$y_title", "scale": {"domain": "$y_domain", "nice": false}}},
    "layer": [
      {"data": {"name": "selected_levels"}, "mark": {"type": "line", "clip": true, "strokeWidth": 1.4},
       "encoding": {
         "order": {"field": "order"}, "detail": {"field": "level"},
         "color": {"field": "shape", "type": "nominal",
                   "scale": {"domain": ["metric", "no metric"], "range": ["var(--c1)", "var(--noise)"]},
                   "legend": {"orient": "top", "title": null, "symbolType": "stroke"}},
         "strokeDash": {"field": "shape", "type": "nominal", "legend": {"orient": "top", "title": null, "symbolType": "stroke"},
                        "scale": {"domain": ["metric", "no metric"], "range": [[1, 0], [4, 4]]}}}},
      {"data": {"name": "selected_keys"}, "mark": {"type": "point", "filled": true, "opacity": 1,
                                                   "stroke": "var(--muted)", "strokeWidth": 0.5},
       "encoding": {
         "fill": {"field": "weight", "type": "quantitative", "title": "attention",
                  "scale": {"type": "sqrt", "range": ["var(--heat-0)", "var(--heat-1)", "var(--heat-2)", "var(--heat-3)"]},
                  "legend": {"orient": "top", "gradientLength": 120, "gradientThickness": 8, "format": ".2"}},
         "size": {"field": "weight", "type": "quantitative", "scale": {"range": [30, 260]}, "legend": null},
         "tooltip": [{"field": "word", "title": "key"}, {"field": "position"}, {"field": "weight"}]}},
      {"data": {"name": "selected_keys"}, "transform": [{"filter": "datum.named"}],
       "mark": {"type": "text", "dy": -11, "fontSize": 11, "color": "var(--ink)", "clip": true},
       "encoding": {"text": {"field": "word"}}},
      {"data": {"name": "selected_query"}, "mark": {"type": "point", "shape": "cross", "filled": true, "size": 150,
                                                    "color": "var(--worse)", "opacity": 1},
       "encoding": {"tooltip": [{"field": "word", "title": "query"}]}}]})json");
}

json attention_spec() {
  return json::parse(R"json({
    "width": "$size", "height": "$size", "data": {"name": "selected_map"},
    "params": [{"name": "words", "value": "$words"}],
    "mark": {"type": "rect", "invalid": null},
    "encoding": {
      "x": {"field": "key", "type": "ordinal", "title": "key",
            "axis": {"labelExpr": "words[datum.value]", "labelAngle": -90, "labelFontSize": 9,
                     "labelOverlap": true, "labelLimit": 80, "ticks": false, "domain": false}},
      "y": {"field": "query", "type": "ordinal", "title": "query",
            "axis": {"labelExpr": "words[datum.value]", "labelFontSize": 9, "labelOverlap": true,
                     "labelLimit": 80, "ticks": false, "domain": false}},
      "color": {"field": "weight", "type": "quantitative", "title": "attention",
                "scale": {"type": "sqrt", "range": ["var(--heat-0)", "var(--heat-1)", "var(--heat-2)", "var(--heat-3)"]},
                "legend": {"orient": "top", "gradientLength": 160, "gradientThickness": 8, "format": ".2"}},
      "tooltip": [{"field": "query_word", "title": "query"}, {"field": "key_word", "title": "key"},
                  {"field": "weight"}]}})json");
}

}  // namespace

std::vector<Chart> metric_charts(const std::vector<std::string>& methods, const ChartData& data) {
  std::vector<Chart> charts;
  if (!data.at("heads").empty()) {
    charts.push_back(
        {.id = "heads",
         .title = "Metric of each head",
         .text = "Mean over tokens and coordinates. Choose a cell, or a layer and a head above.",
         .tables = {"selected_heads"},
         .spec = heads_spec()});
  }
  if (!data.at("profiles").empty()) {
    charts.push_back(
        {.id = "profile",
         .title = "Profile of the head",
         .text = "Mean over tokens of each coordinate; a level profile is plain attention.",
         .tables = {"selected_profile"},
         .spec = profile_spec()});
  }
  if (!data.at("drift").empty()) {
    charts.push_back({.id = "drift",
                      .title = "Drift of the metric",
                      .text = "Mean over layers, heads, tokens and coordinates while training.",
                      .tables = {"drift"},
                      .spec = drift_spec(methods, data.at("drift"))});
  }
  if (!data.at("head_drift").empty()) {
    charts.push_back({.id = "head-drift",
                      .title = "Drift of single heads",
                      .text = "Of the run chosen above; the chosen head is thick.",
                      .tables = {"selected_head_drift"},
                      .spec = head_drift_spec()});
  }
  return charts;
}

std::vector<Chart> snapshot_charts() {
  return {
      {.id = "ellipse",
       .title = "What a query sees",
       .text =
           "Keys around a query in two of the head's coordinates; a large, strong key gets much "
           "attention. Each "
           "level set holds a quarter more of the keys, measured with the metric of the query.",
       .tables = {"selected_keys", "selected_levels", "selected_query"},
       .spec = ellipse_spec()},
      {.id = "attention",
       .title = "Attention",
       .text = "Each row is a query and sums to one.",
       .tables = {"selected_map"},
       .spec = attention_spec()}};
}

}  // namespace elliptical::report
