// SPDX-License-Identifier: MIT
#include "elliptical/report/variant_bench.h"

#include <charconv>
#include <set>

#include "elliptical/base/errors.h"
#include "elliptical/base/files.h"
#include "elliptical/base/json.h"
#include "elliptical/report/data_table.h"

namespace elliptical::report {
namespace {

using nlohmann::json;

constexpr JsonLimits kLimits = {.max_bytes = size_t{16} << 20};
constexpr double kMebibyte = 1 << 20;
constexpr std::string_view kPeakBytes = "peak_bytes_";

/// The number of tokens that a field such as "peak_bytes_4096" speaks of; 0: it is another field.
int64_t tokens_of(std::string_view field) {
  if (!field.starts_with(kPeakBytes)) return 0;
  field.remove_prefix(kPeakBytes.size());
  int64_t tokens = 0;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), tokens);
  return error == std::errc() && end == field.data() + field.size() && tokens > 0 ? tokens : 0;
}

void add_variant(const json& record, VariantBench& bench) {
  if (record.at("what") != "variants") throw DataError("is of another bench");
  const auto& attention = record.at("attention").get_ref<const std::string&>();
  if (!record.at("refusal").get_ref<const std::string&>().empty()) return;
  const auto ratio = [&](const char* name) {
    const json& value = record.at(name);
    return value.is_null() ? json() : chart_number(value.get<double>());
  };
  bench.times.add({attention, chart_number(1e3 * record.at("min_s").get<double>()),
                   ratio("ratio_min"), ratio("ratio_median")});
  for (const auto& [field, value] : record.items()) {
    if (const int64_t tokens = tokens_of(field); tokens > 0 && !value.is_null()) {
      bench.memory.add({attention, tokens, chart_number(value.get<double>() / kMebibyte)});
    }
  }
  if (!record.at("threads").is_number_integer()) {
    throw DataError("threads must be a whole number, is none");
  }
  bench.machine = record.at("cpu").get<std::string>() + ", " +
                  std::to_string(record.at("threads").get<int64_t>()) + " threads, SIMD " +
                  record.at("simd").get<std::string>() + ", torch " +
                  record.at("torch").get<std::string>();
}

json time_spec() {
  return json::parse(R"json({
    "width": "container", "height": {"step": 26}, "data": {"name": "variant_times"},
    "encoding": {"y": {"field": "attention", "type": "nominal", "title": null, "sort": {"field": "ratio"},
                       "axis": {"domain": false, "ticks": false, "labelLimit": 170}}},
    "layer": [
      {"mark": {"type": "bar", "height": 14, "cornerRadiusEnd": 2, "color": "var(--noise)"},
       "encoding": {"x": {"field": "ratio", "type": "quantitative", "title": "time of a training step, softmax = 1"},
                    "tooltip": [{"field": "attention"}, {"field": "milliseconds"}, {"field": "ratio"},
                                {"field": "ratio_median", "title": "ratio of medians"}]}},
      {"mark": {"type": "text", "align": "left", "dx": 5, "color": "var(--ink)"},
       "encoding": {"x": {"field": "ratio", "type": "quantitative"},
                    "text": {"field": "ratio", "type": "quantitative", "format": ".2f"}}}]})json");
}

json memory_spec() {
  return json::parse(R"json({
    "width": "container", "height": 300, "data": {"name": "variant_memory"},
    "mark": {"type": "line", "strokeWidth": 1.8, "point": {"size": 40}},
    "encoding": {
      "x": {"field": "tokens", "type": "quantitative", "scale": {"type": "log", "base": 2, "nice": false},
            "title": "tokens", "axis": {"grid": false, "format": "d", "values": []}},
      "y": {"field": "mebibytes", "type": "quantitative", "scale": {"type": "log"}, "title": "MiB"},
      "color": {"field": "attention", "type": "nominal", "legend": {"orient": "top", "title": null, "columns": "$columns"}},
      "tooltip": [{"field": "attention"}, {"field": "tokens"}, {"field": "mebibytes", "title": "MiB"}]}})json");
}

}  // namespace

VariantBench read_variant_bench(const std::filesystem::path& path) {
  return parse_variant_bench(read_file(path, kLimits.max_bytes), path.string());
}

VariantBench parse_variant_bench(std::string_view text, const std::string& name) {
  VariantBench bench;
  try {
    const json records = parse_json<json>(text, "it", kLimits);
    if (!records.is_array() || records.empty()) throw DataError("has no list of records");
    for (const json& record : records) add_variant(record, bench);
  } catch (const std::exception& error) {
    throw DataError(
        name +
        ": must be what `elliptical bench --what variants --format json` prints: " + error.what());
  }
  return bench;
}

std::vector<Chart> variant_charts(const VariantBench& bench) {
  std::vector<Chart> charts;
  if (bench.times.empty()) return charts;
  charts.push_back(
      {.id = "variant-time",
       .title = "Time per training step",
       .text = "Minima of steps taken in turns, relative to softmax attention; shorter is better.",
       .tables = {"variant_times"},
       .spec = time_spec()});
  if (bench.memory.empty()) return charts;
  charts.push_back({.id = "variant-memory",
                    .title = "Memory over tokens",
                    .text = "Peak of forward and backward of one layer; both axes are logarithmic, "
                            "so that linear growth has slope 1.",
                    .tables = {"variant_memory"},
                    .spec = memory_spec()});
  std::set<int64_t> tokens;
  for (size_t row = 0; row < bench.memory.size(); ++row) {
    tokens.insert(bench.memory.at(row, "tokens").get<int64_t>());
  }
  charts.back().spec["encoding"]["x"]["axis"]["values"] = tokens;
  return charts;
}

}  // namespace elliptical::report
