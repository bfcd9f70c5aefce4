// SPDX-License-Identifier: MIT
#include "elliptical/report/chart_data.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace elliptical::report {
namespace {

using nlohmann::json;

/// Colour and shape in one word; docs/report.md explains them.
std::string verdict(const measure::Measure& measure, const Difference& difference) {
  const Verdict verdict = verdict_of(difference, measure);
  if (verdict == Verdict::kWithin) return "inside the noise";
  if (verdict != Verdict::kOutside) return to_string(verdict);
  return measure.is_gain(difference.percent) ? "better" : "worse";
}

std::vector<const MethodRow*> drawn_rows(const Comparison& comparison,
                                         const std::vector<std::string>& methods) {
  std::vector<const MethodRow*> rows;
  for (const MethodRow& row : comparison.rows) {
    if (std::find(methods.begin(), methods.end(), row.name) != methods.end()) rows.push_back(&row);
  }
  return rows;
}

/// Ends of the bar of one standard deviation over seeds; where differences are ratios it is a
/// factor.
json low_bar(const measure::Measure& measure, const Cell& cell) {
  if (!cell.deviation_percent) return nullptr;
  return chart_number(measure.is_ratio ? cell.mean / (1 + *cell.deviation_percent / 100)
                                       : cell.mean - *cell.deviation_percent);
}
json high_bar(const measure::Measure& measure, const Cell& cell) {
  if (!cell.deviation_percent) return nullptr;
  return chart_number(measure.is_ratio ? cell.mean * (1 + *cell.deviation_percent / 100)
                                       : cell.mean + *cell.deviation_percent);
}

}  // namespace

std::vector<std::string> drawn_methods(const Comparison& comparison,
                                       const std::vector<RunData>& runs) {
  std::vector<std::string> methods;
  std::set<std::string> known;
  const auto add = [&](const std::string& name) {
    if (methods.size() < kMaxMethods && known.insert(name).second) methods.push_back(name);
  };
  for (const MethodRow& row : comparison.rows) add(row.name);
  for (const RunData& run : runs) add(run.name);
  return methods;
}

std::vector<size_t> first_runs(const std::vector<RunData>& runs,
                               const std::vector<std::string>& methods) {
  std::vector<size_t> first;
  for (const std::string& method : methods) {
    const auto run = std::find_if(runs.begin(), runs.end(), [&](const RunData& candidate) {
      return candidate.name == method;
    });
    if (run == runs.end() || first.size() == kMaxChosen) continue;
    first.push_back(static_cast<size_t>(run - runs.begin()));
  }
  return first;
}

std::vector<size_t> chosen_runs(const std::vector<RunData>& runs,
                                const std::vector<std::string>& methods) {
  if (runs.size() > kMaxChosen) return first_runs(runs, methods);
  std::vector<size_t> all(runs.size());
  std::iota(all.begin(), all.end(), size_t{0});
  return all;
}

void add_difference_data(const Comparison& comparison,
                         const std::vector<std::string>& methods,
                         ChartData& data) {
  DataTable table({"method", "measure", "against", "percent", "low", "high", "verdict", "seeds"});
  for (const MethodRow* row : drawn_rows(comparison, methods)) {
    for (size_t m = 0; m < row->cells.size(); ++m) {
      if (!row->cells[m]) continue;
      const Column& column = comparison.columns[m];
      const auto add = [&](const std::optional<Difference>& difference,
                           const std::string& against) {
        if (!difference) return;
        const auto& interval = difference->interval;
        table.add({row->name, column.name, against, chart_number(difference->percent),
                   interval ? chart_number(interval->low) : json(),
                   interval ? chart_number(interval->high) : json(),
                   verdict(*column.measure, *difference), difference->num_seeds});
      };
      add(row->cells[m]->to_reference, comparison.reference);
      add(row->cells[m]->to_matched, comparison.matched);
    }
  }
  data.emplace("differences", std::move(table));
}

void add_value_data(const Comparison& comparison,
                    const std::vector<std::string>& methods,
                    ChartData& data) {
  DataTable values({"method", "measure", "seed", "value"});
  DataTable means({"method", "measure", "value", "low", "high"});
  DataTable pairs({"method", "seed", "clean", "damaged"});
  DataTable pair_means(
      {"method", "clean", "clean_low", "clean_high", "damaged", "damaged_low", "damaged_high"});
  const size_t clean_place = comparison.main_column(measure::Condition::kClean),
               damaged_place = comparison.main_column(measure::Condition::kDamaged);
  for (const MethodRow* row : drawn_rows(comparison, methods)) {
    const auto seed = [&](size_t s) {
      return s < row->seeds.size() ? json(row->seeds[s]) : json();
    };
    for (size_t m = 0; m < row->cells.size(); ++m) {
      if (!row->cells[m]) continue;
      const Cell& cell = *row->cells[m];
      const Column& column = comparison.columns[m];
      for (size_t s = 0; s < cell.values.size() && cell.values.size() <= kMaxLines; ++s) {
        values.add({row->name, column.name, seed(s), chart_number(cell.values[s])});
      }
      means.add({row->name, column.name, chart_number(cell.mean), low_bar(*column.measure, cell),
                 high_bar(*column.measure, cell)});
    }
    if (std::max(clean_place, damaged_place) >= row->cells.size()) continue;
    const std::optional<Cell>&clean = row->cells[clean_place], &damaged = row->cells[damaged_place];
    if (!clean || !damaged) continue;
    const measure::Measure& measure = comparison.measures->main();
    pair_means.add({row->name, chart_number(clean->mean), low_bar(measure, *clean),
                    high_bar(measure, *clean), chart_number(damaged->mean),
                    low_bar(measure, *damaged), high_bar(measure, *damaged)});
    const size_t num_seeds = std::min(clean->values.size(), damaged->values.size());
    for (size_t s = 0; s < num_seeds && num_seeds <= kMaxLines; ++s) {
      pairs.add(
          {row->name, seed(s), chart_number(clean->values[s]), chart_number(damaged->values[s])});
    }
  }
  data.emplace("values", std::move(values));
  data.emplace("means", std::move(means));
  data.emplace("pairs", std::move(pairs));
  data.emplace("pair_means", std::move(pair_means));
}

void add_speed_data(const Comparison& comparison,
                    const std::vector<std::string>& methods,
                    ChartData& data) {
  DataTable table({"method", "value"});
  for (const MethodRow* row : drawn_rows(comparison, methods)) {
    if (row->units_per_second) table.add({row->name, chart_number(*row->units_per_second)});
  }
  data.emplace("speeds", std::move(table));
}

}  // namespace elliptical::report
