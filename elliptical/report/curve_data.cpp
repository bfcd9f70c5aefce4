// SPDX-License-Identifier: MIT
//
// Curves of charts: losses and the metric over training.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "elliptical/measure/labels.h"
#include "elliptical/report/chart_data.h"

namespace elliptical::report {
namespace {

using nlohmann::json;

/// Mean, lowest and highest of what falls into one range of steps.
struct Range {
  double sum = 0, low = std::numeric_limits<double>::infinity(), high = -low, steps = 0;
  int64_t count = 0;
  void add(double step, double value) {
    sum += value, low = std::min(low, value), high = std::max(high, value), steps += step, ++count;
  }
  double mean() const { return sum / static_cast<double>(count); }
  double step() const { return steps / static_cast<double>(count); }
};

/// One line of a chart: a run, or a method where there are many runs.
using Line = std::tuple<size_t, std::string, std::string>;  // place of the line, method, kind

class Curves {
 public:
  explicit Curves(int64_t last_step)
      : width_(std::max<int64_t>(1, (last_step + kMaxPoints) / static_cast<int64_t>(kMaxPoints))) {}
  /// Values of a run in the same range of steps count as one.
  void add_run(const Line& line, const std::vector<std::pair<int64_t, double>>& points) {
    std::map<int64_t, Range> ranges;
    for (const auto& [step, value] : points) {
      ranges[step / width_].add(static_cast<double>(step), value);
    }
    for (const auto& [place, range] : ranges) lines_[line][place].add(range.step(), range.mean());
  }
  void write(DataTable& table) const {
    for (const auto& [line, ranges] : lines_) {
      const auto& [place, method, kind] = line;
      for (const auto& [unused, range] : ranges) {
        const bool band = range.count > 1;
        table.add({place, method, kind, std::llround(range.step()), chart_number(range.mean()),
                   band ? chart_number(range.low) : json(),
                   band ? chart_number(range.high) : json()});
      }
    }
  }

 private:
  int64_t width_;
  std::map<Line, std::map<int64_t, Range>> lines_;
};

/// The loss that a record of an evaluation while training tells, in nats.
std::optional<double> validation_loss(const Record& record, const measure::TaskMeasures& measures) {
  if (measure::source_of(record) != measure::Source::kTraining) return std::nullopt;
  if (record.metric != measures.loss_metric || measures.nats == nullptr) return std::nullopt;
  return measures.nats(record.value);
}

int64_t last_step(const std::vector<RunData>& runs) {
  int64_t last = 0;
  for (const RunData& run : runs) {
    for (const auto* records : {&run.log, &run.records}) {
      for (const Record& record : *records) last = std::max(last, measure::step_of(record));
    }
  }
  return last;
}

}  // namespace

void add_loss_data(const std::vector<RunData>& runs,
                   const std::vector<std::string>& methods,
                   ChartData& data,
                   std::vector<std::string>& problems) {
  Curves curves(last_step(runs));
  const bool by_method = runs.size() > kMaxLines;
  for (size_t i = 0; i < runs.size(); ++i) {
    const auto method = std::find(methods.begin(), methods.end(), runs[i].name);
    if (method == methods.end()) continue;
    const size_t place = by_method ? static_cast<size_t>(method - methods.begin()) : i;
    std::vector<std::pair<int64_t, double>> training, validation;
    int64_t num_bad = 0;
    const auto add = [&](auto& points, const Record& record, double value) {
      const int64_t step = measure::step_of(record);
      if (!std::isfinite(value)) ++num_bad;
      if (step >= 0 && std::isfinite(value)) points.emplace_back(step, value);
    };
    for (const Record& record : runs[i].log) {
      if (record.metric == "loss") add(training, record, record.value);
    }
    for (const Record& record : runs[i].records) {
      if (const auto loss = validation_loss(record, *runs[i].measures))
        add(validation, record, *loss);
    }
    if (num_bad > 0) {
      problems.push_back(runs[i].folder.string() + ": " + std::to_string(num_bad) +
                         " losses are not finite (left out of the curves; log.jsonl has them)");
    }
    curves.add_run({place, runs[i].name, "training"}, training);
    curves.add_run({place, runs[i].name, "validation"}, validation);
  }
  DataTable table({"line", "method", "kind", "step", "value", "low", "high"});
  curves.write(table);
  data.emplace("losses", std::move(table));
}

void add_metric_data(const std::vector<RunData>& runs,
                     const std::vector<size_t>& chosen,
                     ChartData& data) {
  DataTable heads({"run", "layer", "head", "mean", "anisotropy", "text"});
  DataTable profiles({"run", "layer", "head", "coordinate", "value"});
  DataTable drift({"line", "method", "step", "value"});
  DataTable head_drift({"run", "layer", "head", "step", "value"});
  for (const size_t i : chosen) {
    const RunData& run = runs[i];
    // Records are in the order of measurement: later ones replace earlier ones. What was measured
    // on damaged text says nothing about the model.
    std::map<std::pair<int64_t, int64_t>, std::pair<std::optional<double>, std::optional<double>>>
        cells;
    std::map<std::tuple<int64_t, int64_t, int64_t>, double> profile;
    std::map<int64_t, double> means;
    std::map<std::tuple<int64_t, int64_t, int64_t>, double> over_training;  // layer, head, step
    for (const Record& record : run.records) {
      if (measure::text_label(record, "perturbation").value_or("none") != "none") continue;
      const int64_t layer = measure::whole_label(record, "layer").value_or(-1),
                    head = measure::whole_label(record, "head").value_or(-1);
      const int64_t step = measure::whole_label(record, "step").value_or(0);
      const bool training = measure::source_of(record) == measure::Source::kTraining;
      if (record.metric == "metric_mean" && training) means[step] = record.value;
      if (layer < 0 || head < 0) continue;
      if (record.metric == "metric_head_mean") {
        cells[{layer, head}].first = record.value;
        if (training) over_training[{layer, head, step}] = record.value;
      } else if (record.metric == "metric_head_anisotropy") {
        cells[{layer, head}].second = record.value;
      } else if (record.metric == "metric_profile") {
        profile[{layer, head, measure::whole_label(record, "coordinate").value_or(0)}] =
            record.value;
      }
    }
    for (const auto& [place, cell] : cells) {
      if (!cell.first) continue;
      heads.add({i, place.first, place.second, chart_number(*cell.first),
                 cell.second ? chart_number(*cell.second) : json(), number_text(*cell.first, 3)});
    }
    for (const auto& [place, value] : profile) {
      const auto& [layer, head, coordinate] = place;
      profiles.add({i, layer, head, coordinate, chart_number(value)});
    }
    // Every few measurements of a long training are enough for a line.
    const size_t stride = means.size() / kMaxPoints + 1;
    std::set<int64_t> kept;
    size_t place = 0;
    for (const auto& [step, value] : means) {
      if (place++ % stride != 0 && place != means.size()) continue;
      kept.insert(step);
      drift.add({i, run.name, step, chart_number(value)});
    }
    for (const auto& [where, value] : over_training) {
      const auto& [layer, head, step] = where;
      if (means.empty() || kept.contains(step)) {
        head_drift.add({i, layer, head, step, chart_number(value)});
      }
    }
  }
  data.emplace("heads", std::move(heads));
  data.emplace("profiles", std::move(profiles));
  data.emplace("drift", std::move(drift));
  data.emplace("head_drift", std::move(head_drift));
}

}  // namespace elliptical::report
