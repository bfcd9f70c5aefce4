// SPDX-License-Identifier: MIT
#include "elliptical/report/comparison.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "elliptical/base/controls.h"
#include "elliptical/base/names.h"
#include "elliptical/measure/labels.h"
#include "elliptical/report/comparison_columns_impl.h"
#include "elliptical/report/run_selection.h"

namespace elliptical::report {
namespace {

/// Ends the labels of log.jsonl that tell speeds: "tokens_per_second".
constexpr std::string_view kPerSecond = "_per_second";

/// Runs of one name, by seed.
using Method = std::map<int64_t, MeasuredRun>;

/// Measurements of two runs of one seed.
using Pair = std::pair<const measure::Measurement*, const measure::Measurement*>;

class Comparer {
 public:
  Comparer(const std::vector<RunData>& runs, const ComparisonOptions& options) : options_(options) {
    RunSelection selection = select_runs(runs, options.reference);
    result_.task = selection.task;
    result_.data = selection.data;
    if (!selection.runs.empty()) result_.measures = selection.runs.front().run->measures;
    result_.problems = std::move(selection.problems);
    for (const SelectedRun& selected : selection.runs) {
      runs_.push_back({selected.run, measure::measurements_at(selected.run->records, selected.step,
                                                              *selected.run->measures)});
      result_.is_smoke |= is_smoke(*selected.run);
    }
  }

  Comparison compare() {
    ColumnChoice choice = choose_columns(runs_, options_);
    result_.split = choice.split;
    result_.reading = choice.reading;
    result_.damages = std::move(choice.damages);
    if (const auto* usual = result_.measures->usual_perturbation();
        usual != nullptr && result_.damages.empty()) {
      result_.damages = {{.perturbation = usual}};
    }
    result_.columns = std::move(choice.columns);
    result_.has_non_finite = choice.has_non_finite;
    result_.problems.insert(result_.problems.end(), choice.problems.begin(), choice.problems.end());
    result_.remarks = std::move(choice.remarks);
    make_methods();
    for (MethodRow& row : result_.rows) fill_row(row);
    for (size_t c = 0; c < result_.columns.size(); ++c) {
      Column& column = result_.columns[c];
      noise_.push_back(training_noise(noise_table(c)));
      if (noise_[c]) column.noise_percent = column.measure->shown(noise_[c]->deviation);
      for (MethodRow& row : result_.rows) {
        if (!row.cells[c]) continue;
        row.cells[c]->to_reference = difference(row.name, result_.reference, c);
        row.cells[c]->to_matched = difference(row.name, result_.matched, c);
      }
    }
    note_gaps();
    return std::move(result_);
  }

 private:
  void make_methods();
  void fill_row(MethodRow& row);
  std::vector<std::vector<std::optional<double>>> noise_table(size_t column) const;
  std::optional<Difference> difference(const std::string& name,
                                       const std::string& other,
                                       size_t column);
  std::optional<DataParts> data_parts(const measure::Measure& measure,
                                      const std::vector<Pair>& pairs) const;
  void note_gaps();

  const ComparisonOptions& options_;
  Comparison result_;
  std::vector<MeasuredRun> runs_;
  std::map<std::string, Method> methods_;
  std::vector<std::optional<TrainingNoise>> noise_;
  std::set<measure::Condition> lacks_blocks_;
};

void Comparer::make_methods() {
  for (MeasuredRun& run : runs_) methods_[run.run->name].emplace(run.run->seed, std::move(run));
  std::vector<std::string> names, controls;
  for (const auto& [name, method] : methods_) {
    const bool is_control = std::find(kControls.begin(), kControls.end(), name) != kControls.end();
    (is_control ? controls : names).push_back(name);
  }
  std::sort(controls.begin(), controls.end(), [](const std::string& a, const std::string& b) {
    return std::find(kControls.begin(), kControls.end(), a) <
           std::find(kControls.begin(), kControls.end(), b);
  });
  names.insert(names.end(), controls.begin(), controls.end());
  const auto wanted = std::find(names.begin(), names.end(), options_.reference);
  if (wanted != names.end()) {
    std::rotate(names.begin(), wanted, wanted + 1);
  } else if (!names.empty()) {
    result_.problems.push_back("reference: no method is called \"" + options_.reference + "\", " +
                               names.front() + " takes its place (--reference NAME)");
  }
  for (const std::string& name : names) {
    MethodRow row{.name = name};
    if (name == names.front()) {
      row.role = Role::kReference;
    } else if (std::find(controls.begin(), controls.end(), name) != controls.end()) {
      row.role = Role::kControl;
    }
    result_.rows.push_back(std::move(row));
  }
  if (!names.empty()) result_.reference = names.front();
  if (methods_.contains(std::string(kMatchedConstant))) result_.matched = kMatchedConstant;
}

void Comparer::fill_row(MethodRow& row) {
  std::vector<double> speeds;
  for (const auto& [seed, run] : methods_.at(row.name)) {
    row.seeds.push_back(seed);
    for (const Record& record : run.run->records) {
      row.leaks_future |= measure::source_of(record) == measure::Source::kTraining &&
                          measure::flag_label(record, "leaks_future").value_or(false);
    }
    for (const Record& record : run.run->log) {
      for (const auto& [label, value] : record.labels) {
        if (!label.ends_with(kPerSecond)) continue;
        result_.unit = label.substr(0, label.size() - kPerSecond.size());
        if (const auto* speed = std::get_if<double>(&value)) speeds.push_back(*speed);
      }
    }
  }
  if (!speeds.empty()) {
    std::sort(speeds.begin(), speeds.end());
    row.units_per_second = quantile(speeds, 0.5);
  }
  for (size_t c = 0; c < result_.columns.size(); ++c) {
    Cell cell;
    std::vector<double> levels;
    const measure::Measure& measure = *result_.columns[c].measure;
    for (const auto& [seed, run] : methods_.at(row.name)) {
      if (run.chosen[c] == nullptr) {
        cell.values.push_back(std::nan(""));
        continue;
      }
      cell.values.push_back(run.chosen[c]->value);
      levels.push_back(measure.level(cell.values.back()));
    }
    if (levels.empty()) {
      row.cells.emplace_back();
      continue;
    }
    double sum = 0;
    for (const double value : levels) sum += value;
    cell.mean = measure.from_level(sum / static_cast<double>(levels.size()));
    if (levels.size() > 1) cell.deviation_percent = measure.shown(standard_deviation(levels));
    row.cells.emplace_back(std::move(cell));
  }
}

std::vector<std::vector<std::optional<double>>> Comparer::noise_table(size_t column) const {
  std::set<int64_t> seeds;
  for (const auto& [name, method] : methods_) {
    for (const auto& [seed, run] : method) seeds.insert(seed);
  }
  std::vector<std::vector<std::optional<double>>> table;
  for (const auto& [name, method] : methods_) {
    auto& row = table.emplace_back();
    for (const int64_t seed : seeds) {
      const auto run = method.find(seed);
      const bool is_there = run != method.end() && run->second.chosen[column] != nullptr;
      row.push_back(is_there ? std::optional(result_.columns[column].measure->level(
                                   run->second.chosen[column]->value))
                             : std::nullopt);
    }
  }
  return table;
}

std::optional<Difference> Comparer::difference(const std::string& name,
                                               const std::string& other,
                                               size_t column) {
  if (other.empty() || name == other) return std::nullopt;
  const measure::Measure& measure = *result_.columns[column].measure;
  std::vector<Pair> pairs;
  double sum = 0;
  const Method& others = methods_.at(other);
  for (const auto& [seed, run] : methods_.at(name)) {
    const auto paired = others.find(seed);
    if (paired == others.end()) continue;
    const measure::Measurement *a = run.chosen[column], *b = paired->second.chosen[column];
    if (a == nullptr || b == nullptr) continue;
    sum += measure.level(a->value) - measure.level(b->value);
    pairs.emplace_back(a, b);
  }
  if (pairs.empty()) return std::nullopt;
  const auto num_seeds = static_cast<int64_t>(pairs.size());
  const double mean = sum / static_cast<double>(num_seeds);
  Difference result{.percent = measure.shown(mean), .num_seeds = num_seeds};
  if (num_seeds < 2 || !noise_[column]) return result;
  const auto parts = data_parts(measure, pairs);
  if (!parts) lacks_blocks_.insert(result_.columns[column].condition);
  const RandomKey key =
      RandomKey(options_.seed).derive(result_.columns[column].name).derive(name).derive(other);
  const Interval levels = difference_interval(
      mean, num_seeds, *noise_[column], parts.value_or(DataParts()), options_.num_replicates, key);
  result.interval = Interval{measure.shown(levels.low), measure.shown(levels.high)};
  return result;
}

/// Whether the same data were cut in the same places.
bool have_same_blocks(const measure::Measurement& a, const measure::Measurement& b) {
  return std::equal(a.blocks.begin(), a.blocks.end(), b.blocks.begin(), b.blocks.end(),
                    [](const measure::Block& x, const measure::Block& y) {
                      return x.index == y.index && x.count == y.count;
                    });
}

/// Nothing where parts are missing, or are not the same for both methods and all seeds.
std::optional<DataParts> Comparer::data_parts(const measure::Measure& measure,
                                              const std::vector<Pair>& pairs) const {
  const measure::Measurement& first = *pairs.front().first;
  if (first.blocks.empty()) return std::nullopt;
  for (const auto& [a, b] : pairs) {
    if (!have_same_blocks(first, *a) || !have_same_blocks(first, *b)) return std::nullopt;
  }
  if (measure.whole == measure::Whole::kRatioOfSums) {
    const auto difference = [&measure, pairs](const std::vector<size_t>& drawn) {
      double sum = 0;
      for (const auto& [a, b] : pairs) {
        const auto of_a = measure::whole_of(measure, a->blocks, drawn),
                   of_b = measure::whole_of(measure, b->blocks, drawn);
        if (!of_a || !of_b) return std::optional<double>();
        const double each = measure.level(*of_a) - measure.level(*of_b);
        if (!std::isfinite(each)) return std::optional<double>();
        sum += each;
      }
      return std::optional(sum / static_cast<double>(pairs.size()));
    };
    return DataParts{.count = first.blocks.size(), .difference = difference};
  }
  std::vector<BlockDifference> blocks(first.blocks.size());
  for (const auto& [a, b] : pairs) {
    for (size_t i = 0; i < blocks.size(); ++i) {
      blocks[i].value +=
          (a->blocks[i].value - b->blocks[i].value) / static_cast<double>(pairs.size());
      blocks[i].weight = static_cast<double>(first.blocks[i].count);
    }
  }
  return parts_of_mean(blocks);
}

void Comparer::note_gaps() {
  std::set<int64_t> seeds;
  bool has_metric = false;
  for (const MethodRow& row : result_.rows) {
    seeds.insert(row.seeds.begin(), row.seeds.end());
    for (const auto& [seed, run] : methods_.at(row.name)) {
      for (const Record& record : run.run->records) {
        has_metric |= row.role == Role::kMethod && record.labels.contains("metric_estimator");
      }
    }
  }
  for (const MethodRow& row : result_.rows) {
    std::vector<std::string> missing;
    for (const int64_t seed : seeds) {
      if (std::find(row.seeds.begin(), row.seeds.end(), seed) == row.seeds.end()) {
        missing.push_back(std::to_string(seed));
      }
    }
    if (missing.empty()) continue;
    result_.problems.push_back(row.name + ": has no finished run with seed " + join(missing) +
                               ", others have (differences use the seeds that both have)");
  }
  for (const auto& [control, reason] :
       {std::pair(kMatchedConstant, "a gain may be that of a temperature"),
        std::pair(kNullTwin, "the floor is unknown")}) {
    if (!has_metric || methods_.contains(std::string(control))) continue;
    if (control == kNullTwin && seeds.size() < 2) continue;  // nothing has an interval anyway
    result_.problems.push_back(std::string(control) + ": is missing, without it " + reason +
                               " (elliptical compare RECIPE --run DIR trains it)");
  }
  if (!lacks_blocks_.empty()) {
    std::vector<std::string> advice;
    if (lacks_blocks_.erase(measure::Condition::kAttacked) > 0) {
      advice.emplace_back("attack again with --eval-set blocks=50");
    }
    if (!lacks_blocks_.empty()) advice.emplace_back("measure again with --set blocks=50");
    result_.problems.push_back(
        "intervals: some cover the noise of training only, because there are no records of parts "
        "of the data (" +
        join(advice) + ")");
  }
}

}  // namespace

Verdict verdict_of(const Difference& difference, const measure::Measure& measure) {
  if (!difference.interval) return Verdict::kOneSeed;
  const auto [low, high] = *difference.interval;
  if (-measure.margin <= low && high <= measure.margin) return Verdict::kEqual;
  if (!difference.interval->excludes_zero()) return Verdict::kWithin;
  return std::abs(difference.percent) <= measure.margin ? Verdict::kSmall : Verdict::kOutside;
}

const char* to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::kOneSeed:
      return "one seed";
    case Verdict::kEqual:
      return "equal";
    case Verdict::kSmall:
      return "too small to matter";
    case Verdict::kWithin:
      return "within the noise";
    case Verdict::kOutside:
      return "outside the noise";
  }
  return "";
}

size_t Comparison::main_column(measure::Condition condition) const {
  const auto found = std::find_if(columns.begin(), columns.end(), [&](const Column& column) {
    return column.condition == condition && column.measure == &measures->main();
  });
  return static_cast<size_t>(found - columns.begin());
}

bool Comparison::has_intervals() const {
  const auto has = [](const std::optional<Difference>& difference) {
    return difference && difference->interval;
  };
  return std::any_of(rows.begin(), rows.end(), [&](const MethodRow& row) {
    return std::any_of(row.cells.begin(), row.cells.end(), [&](const std::optional<Cell>& cell) {
      return cell && (has(cell->to_reference) || has(cell->to_matched));
    });
  });
}

Comparison compare_runs(const std::vector<RunData>& runs, const ComparisonOptions& options) {
  return Comparer(runs, options).compare();
}

}  // namespace elliptical::report
