// SPDX-License-Identifier: MIT
//
// A comparison in sentences. They claim nothing that the intervals do not hold.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "elliptical/base/controls.h"
#include "elliptical/base/names.h"
#include "elliptical/report/comparison.h"

namespace elliptical::report {
namespace {

std::string number(double value, const char* pattern) {
  char text[64];
  std::snprintf(text, sizeof text, pattern, value);
  return text;
}

/// "-1.03 to +0.24 %, 3 seeds"
std::string range_text(const measure::Measure& measure, const Difference& difference) {
  return percent_text(difference.interval->low) + " to " + percent_text(difference.interval->high) +
         " " + measure.unit + ", " + std::to_string(difference.num_seeds) + " seeds";
}

/// "elliptical is 0.39 % better than softmax on clean text, within the noise (-1.03 to +0.24 %, 3
/// seeds)."
std::string difference_sentence(const std::string& name,
                                const Difference& difference,
                                const std::string& other,
                                const Column& column) {
  const measure::Measure& measure = *column.measure;
  const Verdict verdict = verdict_of(difference, measure);
  const std::string size = number(std::abs(difference.percent), "%.2f"), unit = measure.unit;
  const std::string range = " (" + range_text(measure, difference) + ").";
  if (verdict == Verdict::kEqual) {
    return name + " equals " + other + " " + column.place + " to " +
           number(measure.margin, "%.2f ") + unit + range;
  }
  const std::string what =
      size == "0.00" ? " is within 0.01 " + unit + " of "
                     : " is " + size + " " + unit +
                           (measure.is_gain(difference.percent) ? " better" : " worse") + " than ";
  return name + what + other + " " + column.place + ", " + to_string(verdict) + range;
}

const MethodRow* find_row(const Comparison& comparison, std::string_view name) {
  for (const MethodRow& row : comparison.rows) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

bool is_decided(const std::optional<Difference>& difference, const measure::Measure& measure) {
  return difference && verdict_of(*difference, measure) == Verdict::kOutside;
}

void add_methods(const Comparison& comparison, size_t m, std::vector<std::string>& words) {
  const Column& column = comparison.columns[m];
  for (const MethodRow& row : comparison.rows) {
    if (row.role != Role::kMethod || !row.cells[m]) continue;
    const Cell& cell = *row.cells[m];
    if (cell.to_reference && cell.to_reference->interval) {
      words.push_back(
          difference_sentence(row.name, *cell.to_reference, comparison.reference, column));
    }
    if (cell.to_matched && cell.to_matched->interval) {
      words.push_back(difference_sentence(row.name, *cell.to_matched, comparison.matched, column));
    }
    const measure::Measure& measure = *column.measure;
    const bool is_gain =
        is_decided(cell.to_reference, measure) && measure.is_gain(cell.to_reference->percent);
    if (is_gain && cell.to_matched && cell.to_matched->interval &&
        !is_decided(cell.to_matched, measure)) {
      words.push_back("What " + row.name + " gains " + column.place +
                      " can not be told apart from what a constant temperature gains.");
    }
  }
}

void add_controls(const Comparison& comparison, size_t m, std::vector<std::string>& words) {
  const Column& column = comparison.columns[m];
  std::vector<std::string> outside, equal, within;
  for (const MethodRow& row : comparison.rows) {
    if (row.role != Role::kControl || row.name == kNullTwin || !row.cells[m]) continue;
    const auto& difference = row.cells[m]->to_reference;
    if (!difference || !difference->interval) continue;
    const Verdict verdict = verdict_of(*difference, *column.measure);
    if (verdict == Verdict::kOutside) {
      outside.push_back(row.name + " (" + range_text(*column.measure, *difference) + ")");
    } else {
      (verdict == Verdict::kWithin ? within : equal).push_back(row.name);
    }
  }
  const std::string against = "against " + comparison.reference + " " + column.place;
  for (const auto& [names, what] :
       {std::pair(&outside, "outside the noise "), std::pair(&within, "within the noise "),
        std::pair(&equal, "that make no difference that matters ")}) {
    if (!names->empty())
      words.push_back("Controls " + (what + against) + ": " + join(*names) + ".");
  }
}

void add_noise(const Comparison& comparison, std::vector<std::string>& words) {
  std::vector<std::string> parts;
  for (const Column& column : comparison.columns) {
    if (!column.noise_percent) continue;
    parts.push_back(number(*column.noise_percent, "%.2f ") + column.measure->unit + " " +
                    column.place);
  }
  if (parts.empty()) return;
  words.push_back("One training varies by " + join(parts) +
                  " (standard deviation, after what its seed shares with other methods).");
}

/// The null twin: what is left when there is nothing to be found.
void add_floor(const Comparison& comparison, std::vector<std::string>& words) {
  const MethodRow* twin = find_row(comparison, kNullTwin);
  if (twin == nullptr) return;
  std::vector<std::string> parts, outside;
  for (size_t m = 0; m < comparison.columns.size(); ++m) {
    if (!twin->cells[m] || !twin->cells[m]->to_matched) continue;
    const Difference& difference = *twin->cells[m]->to_matched;
    const Column& column = comparison.columns[m];
    parts.push_back(percent_text(difference.percent) + " " + column.measure->unit + " " +
                    column.place);
    if (is_decided(difference, *column.measure)) {
      outside.push_back(column.place + " (" + range_text(*column.measure, difference) + ")");
    }
  }
  if (parts.empty()) return;
  words.push_back("The null twin, the same model to the eye, differs from " + comparison.matched +
                  " by " + join(parts) + ": the floor, below which nothing means anything.");
  if (outside.empty()) return;
  words.push_back("The null twin is outside the noise " + join(outside) +
                  ": these intervals are too narrow, believe none of them without more seeds.");
}

}  // namespace

std::string percent_text(double percent) {
  const std::string text = number(percent, "%+.2f");
  return text == "+0.00" || text == "-0.00" ? "0.00" : text;
}

std::vector<std::string> in_words(const Comparison& comparison) {
  std::vector<std::string> words;
  if (comparison.rows.empty() || comparison.columns.empty()) {
    return {"There is nothing to compare: no finished run has been measured."};
  }
  if (comparison.rows.size() == 1) {
    return {"There is nothing to compare " + comparison.reference +
            " with: runs of another name are needed."};
  }
  if (comparison.is_smoke) words.emplace_back(kSmokeBanner);
  bool has_difference = false;
  int64_t num_differences = 0;
  for (const MethodRow& row : comparison.rows) {
    for (const auto& cell : row.cells) {
      if (!cell) continue;
      for (const auto* difference : {&cell->to_reference, &cell->to_matched}) {
        if (!*difference) continue;
        has_difference = true;
        if ((*difference)->interval) ++num_differences;
      }
    }
  }
  if (!has_difference) {
    words.emplace_back("There is nothing to compare: no two methods have a seed in common.");
    return words;
  }
  if (num_differences == 0) {
    words.emplace_back(
        "Nothing can be said with one seed about differences: two trainings of the same model "
        "differ as well (--seeds 3 or more).");
  }
  for (const MethodRow& row : comparison.rows) {
    if (!row.leaks_future) continue;
    words.push_back(row.name + " sees future tokens through its metric: its " +
                    comparison.measures->main().name + " is not that of a language model.");
  }
  if (num_differences == 0 || comparison.is_smoke) return words;
  for (size_t m = 0; m < comparison.columns.size(); ++m) {
    add_methods(comparison, m, words);
    add_controls(comparison, m, words);
  }
  add_noise(comparison, words);
  add_floor(comparison, words);
  if (num_differences >= 10) {
    words.push_back("Of the " + std::to_string(num_differences) +
                    " differences in this table about " +
                    std::to_string(std::lround(0.05 * static_cast<double>(num_differences))) +
                    " would be outside their intervals by chance alone.");
  }
  return words;
}

}  // namespace elliptical::report
