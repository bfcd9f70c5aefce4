// SPDX-License-Identifier: MIT
#include "elliptical/cli/comparison_printer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <ostream>
#include <sstream>

#include "elliptical/base/names.h"
#include "elliptical/base/printable.h"
#include "elliptical/cli/table.h"

namespace elliptical::cli {
namespace {

using report::Comparison;
using report::Difference;
using Json = nlohmann::ordered_json;

const char* role_name(report::Role role) {
  switch (role) {
    case report::Role::kReference:
      return "reference";
    case report::Role::kMethod:
      return "method";
    case report::Role::kControl:
      return "control";
  }
  return "";
}

const char* condition_name(measure::Condition condition) {
  switch (condition) {
    case measure::Condition::kClean:
      return "clean";
    case measure::Condition::kDamaged:
      return "damaged";
    case measure::Condition::kAttacked:
      return "attacked";
  }
  return "";
}

std::string seeds_text(const std::vector<int64_t>& seeds) {
  std::vector<std::string> texts;
  for (const int64_t seed : seeds) texts.push_back(std::to_string(seed));
  return join(texts);
}

/// "-0.72 (-1.31 to -0.13) *"; "-" where there is nothing to say.
std::string difference_text(const std::optional<Difference>& difference,
                            const measure::Measure& measure) {
  if (!difference || !difference->interval) return "-";
  const std::string text = fmt::format("{} ({} to {})", report::percent_text(difference->percent),
                                       report::percent_text(difference->interval->low),
                                       report::percent_text(difference->interval->high));
  switch (report::verdict_of(*difference, measure)) {
    case report::Verdict::kOutside:
      return text + " *";
    case report::Verdict::kEqual:
    case report::Verdict::kSmall:
      return text + " =";
    default:
      return text;
  }
}

Table column_table(const Comparison& comparison, size_t c) {
  const measure::Measure& measure = *comparison.columns[c].measure;
  const std::string unit = measure.unit, value_unit = measure.value_unit;
  const bool has_differences = comparison.has_intervals();
  Table table{.columns = {comparison.columns[c].name, "seeds",
                          measure.name + (value_unit.empty() ? "" : " " + value_unit)}};
  if (has_differences) {
    table.columns.insert(table.columns.end(),
                         {"+- " + unit, unit + " against " + comparison.reference});
    if (!comparison.matched.empty())
      table.columns.push_back(unit + " against " + comparison.matched);
  }
  if (c == 0) table.columns.push_back(comparison.unit + "/s");
  for (const report::MethodRow& row : comparison.rows) {
    if (!row.cells[c]) continue;
    const report::Cell& cell = *row.cells[c];
    std::vector<std::string>& cells = table.rows.emplace_back();
    cells = {row.name + (row.leaks_future ? " (sees the future)" : ""), seeds_text(row.seeds),
             fmt::format("{:.2f}", cell.mean)};
    if (has_differences) {
      cells.push_back(cell.deviation_percent ? fmt::format("{:.2f}", *cell.deviation_percent)
                                             : "-");
      cells.push_back(difference_text(cell.to_reference, measure));
      if (!comparison.matched.empty()) cells.push_back(difference_text(cell.to_matched, measure));
    }
    if (c == 0) {
      cells.push_back(row.units_per_second ? fmt::format("{:.0f}", *row.units_per_second) : "-");
    }
  }
  return table;
}

void print_lines(std::ostream& stream, const char* title, const std::vector<std::string>& lines) {
  if (lines.empty()) return;
  stream << "\n" << title << "\n";
  for (const std::string& line : lines) stream << "  " << line << "\n";
}

/// ", 500 of 10000 pictures, of 10 classes alike" of the columns of a condition; one that has
/// another number says so.
std::string pictures_text(const Comparison& comparison,
                          measure::Condition condition,
                          const std::string& perturbation = "") {
  for (const report::Column& column : comparison.columns) {
    if (column.condition != condition || column.perturbation != perturbation) continue;
    if (column.num_pictures == 0) return "";
    if (column.num_classes == 0) {
      return fmt::format(", the first {} pictures", column.num_pictures);
    }
    const std::string of_all = column.num_all > 0 ? fmt::format(" of {}", column.num_all) : "";
    return fmt::format(", {}{} pictures, of {} classes alike", column.num_pictures, of_all,
                       column.num_classes);
  }
  return "";
}

/// What all tables share: metric, data, what was done to them.
void print_head(std::ostream& stream, const Comparison& comparison) {
  const measure::Measure& measure = comparison.measures->main();
  const std::string reading = measure::reading_text(comparison.reading);
  stream << fmt::format("{} on {} ({}){}; {} is better", measure.title(), comparison.data,
                        comparison.split, reading.empty() ? "" : " " + reading,
                        measure.higher_is_better ? "higher" : "lower");
  bool is_attacked = false;
  for (const report::Column& column : comparison.columns) {
    is_attacked |= column.condition == measure::Condition::kAttacked;
    if (column.measure->higher_is_better == measure.higher_is_better) continue;
    stream << fmt::format(", of {} {}", column.name,
                          column.measure->higher_is_better ? "higher" : "lower");
  }
  stream << ".";
  for (const report::MeasuredDamage& damage : comparison.damages) {
    const std::string name = damage.perturbation->name;
    const auto is_of_it = [&](const report::Column& column) { return column.perturbation == name; };
    if (std::none_of(comparison.columns.begin(), comparison.columns.end(), is_of_it)) continue;
    stream << fmt::format(" {}{}.", damage.perturbation->words(damage.kind, damage.strength),
                          pictures_text(comparison, measure::Condition::kDamaged, name));
  }
  const std::string attacked = pictures_text(comparison, measure::Condition::kAttacked);
  if (is_attacked && !attacked.empty()) stream << " Attacked: " << attacked.substr(2) << ".";
  if (!comparison.has_intervals()) {
    stream << "\n";
    return;
  }
  std::vector<std::string> margins;
  for (const report::Column& column : comparison.columns) {
    const std::string text = fmt::format("{} {}", column.measure->margin, column.measure->unit);
    if (std::find(margins.begin(), margins.end(), text) == margins.end()) margins.push_back(text);
  }
  stream << fmt::format(
      "\nIn parentheses: 95 % intervals over seeds and {}; *: outside the noise; =: equal, less "
      "than {} can not matter.\n",
      comparison.measures->data, join(margins));
}

void print_for_people(std::ostream& stream, const Comparison& comparison) {
  if (comparison.is_smoke) stream << report::kSmokeBanner << "\n\n";
  if (!comparison.columns.empty()) print_head(stream, comparison);
  for (size_t c = 0; c < comparison.columns.size(); ++c) {
    stream << "\n";
    print_text(stream, column_table(comparison, c));
  }
  print_lines(stream, "In words", report::in_words(comparison));
  print_lines(stream, "Worth knowing", comparison.remarks);
  print_lines(stream, "Not as it should be", comparison.problems);
}

Json to_json(const std::optional<Difference>& difference, const measure::Measure& measure) {
  if (!difference) return nullptr;
  Json json = {{"percent", difference->percent}, {"num_seeds", difference->num_seeds}};
  json["interval"] = difference->interval
                         ? Json{difference->interval->low, difference->interval->high}
                         : Json(nullptr);
  const report::Verdict verdict = report::verdict_of(*difference, measure);
  json["outside_noise"] = verdict == report::Verdict::kOutside;
  json["verdict"] = to_string(verdict);
  return json;
}

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json to_json(const Comparison& comparison) {
  Json json = {{"task", comparison.task},           {"data", comparison.data},
               {"split", comparison.split},         {"metric", comparison.measures->main().name},
               {"reference", comparison.reference}, {"matched", comparison.matched},
               {"smoke", comparison.is_smoke}};
  if (const measure::Reading& reading = comparison.reading; !reading.method.empty()) {
    json["method"] = reading.method;
    json["window"] = reading.window;
    if (reading.stride > 0) json["stride"] = reading.stride;
    if (reading.columns > 0) json["columns_of_text"] = reading.columns;
  }
  for (const auto& [perturbation, kind, strength] : comparison.damages) {
    if (perturbation->kind) json[perturbation->kind->label] = kind;
    json[perturbation->strength.label] = strength;
  }
  json["columns"] = Json::array();
  json["noise_percent"] = Json::object();
  for (const report::Column& column : comparison.columns) {
    json["columns"].push_back({{"name", column.name},
                               {"condition", condition_name(column.condition)},
                               {"metric", column.measure->name},
                               {"unit", column.measure->unit},
                               {"higher_is_better", column.measure->higher_is_better},
                               {"margin", column.measure->margin},
                               {"max_pictures", column.num_pictures}});
    json["noise_percent"][column.name] = or_null(column.noise_percent);
  }
  json["methods"] = Json::array();
  for (const report::MethodRow& row : comparison.rows) {
    Json method = {{"name", row.name},
                   {"role", role_name(row.role)},
                   {"seeds", row.seeds},
                   {"leaks_future", row.leaks_future},
                   {comparison.unit + "_per_second", or_null(row.units_per_second)},
                   {"measures", Json::object()}};
    for (size_t c = 0; c < comparison.columns.size(); ++c) {
      if (!row.cells[c]) continue;
      const report::Cell& cell = *row.cells[c];
      method["measures"][comparison.columns[c].name] = {
          {"values", cell.values},
          {"mean", cell.mean},
          {"deviation_percent", or_null(cell.deviation_percent)},
          {"to_reference", to_json(cell.to_reference, *comparison.columns[c].measure)},
          {"to_matched", to_json(cell.to_matched, *comparison.columns[c].measure)}};
    }
    json["methods"].push_back(std::move(method));
  }
  json["words"] = report::in_words(comparison);
  json["remarks"] = comparison.remarks;
  json["problems"] = comparison.problems;
  return json;
}

/// One row for each method and column of the comparison.
Table flat_table(const Comparison& comparison) {
  Table table{.columns = {"measure", "method", "role", "seeds", comparison.measures->main().name,
                          "deviation_percent", "to_reference", "to_reference_low",
                          "to_reference_high", "to_matched", "to_matched_low", "to_matched_high",
                          comparison.unit + "_per_second"}};
  const auto text = [](const std::optional<double>& value) {
    return value ? fmt::format("{}", *value) : std::string();
  };
  for (size_t c = 0; c < comparison.columns.size(); ++c) {
    for (const report::MethodRow& row : comparison.rows) {
      if (!row.cells[c]) continue;
      const report::Cell& cell = *row.cells[c];
      std::vector<std::string>& cells = table.rows.emplace_back();
      cells = {comparison.columns[c].name,   row.name,
               role_name(row.role),          seeds_text(row.seeds),
               fmt::format("{}", cell.mean), text(cell.deviation_percent)};
      for (const auto* difference : {&cell.to_reference, &cell.to_matched}) {
        const bool has_interval = *difference && (*difference)->interval;
        cells.push_back(*difference ? fmt::format("{}", (*difference)->percent) : "");
        cells.push_back(has_interval ? fmt::format("{}", (*difference)->interval->low) : "");
        cells.push_back(has_interval ? fmt::format("{}", (*difference)->interval->high) : "");
      }
      cells.push_back(text(row.units_per_second));
    }
  }
  return table;
}

}  // namespace

void print_comparison(std::ostream& stream,
                      const Comparison& comparison,
                      const std::string& format) {
  if (format == "json") {
    stream << to_json(comparison).dump(1, ' ', false, Json::error_handler_t::replace) << "\n";
  } else if (format == "csv") {
    print_csv(stream, flat_table(comparison));
  } else {
    std::ostringstream text;  // names of runs and data are what others wrote
    print_for_people(text, comparison);
    stream << printable(text.str(), LineEnds::kKeep);
  }
}

}  // namespace elliptical::cli
