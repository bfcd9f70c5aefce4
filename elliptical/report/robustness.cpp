// SPDX-License-Identifier: MIT
#include "elliptical/report/robustness.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "elliptical/base/names.h"
#include "elliptical/measure/attack_flags.h"
#include "elliptical/measure/labels.h"
#include "elliptical/measure/measurements.h"

namespace elliptical::report {
namespace {

using nlohmann::json;

constexpr double kSteps = 255;  ///< eps is shown in these parts of the range of a number

struct Found {
  size_t run;
  std::string method;
  const Record* record;
};

/// Of all classes alike, rather than perhaps the first pictures, as earlier versions took them;
/// their attacks do not say how many there are.
bool is_fair(const Record& record) {
  if (record.labels.contains("subset")) return true;
  const bool is_attack = measure::source_of(record) == measure::Source::kAttack;
  return record.labels.contains("pictures_total") ||
         (!is_attack && !record.labels.contains("max_pictures"));
}

/// What was measured on, as people read it: "cifar-10, test". Charts of attacks tell the number of
/// pictures themselves.
std::string ground_of(const Record& record) {
  std::string ground =
      measure::label_text(record, "data") + ", " + measure::label_text(record, "split");
  if (measure::source_of(record) == measure::Source::kAttack) {
    if (record.labels.contains("corruption")) {
      ground += ", corrupted: " + measure::label_text(record, "corruption");
    }
    return is_fair(record) ? ground : ground + ", perhaps the first pictures only";
  }
  const std::string pictures = measure::label_text(record, "max_pictures");
  if (pictures.empty()) return ground;
  if (!is_fair(record)) return ground + ", first " + pictures + " pictures";
  return ground + ", " + pictures + " of " + measure::label_text(record, "pictures_total") +
         " pictures";
}

struct Ground {
  std::set<size_t> runs;
  bool is_fair = false;
};

/// Records of these metrics, in the order of runs and of their files: of the last step that the run
/// has any of, and of the ground that most runs have, of equally many a fair one.
std::vector<Found> find_records(const std::vector<RunData>& runs,
                                const std::vector<std::string>& methods,
                                const std::set<std::string, std::less<>>& metrics,
                                std::vector<std::string>& problems) {
  std::vector<Found> found;
  std::map<std::string, Ground> grounds;
  for (size_t i = 0; i < runs.size(); ++i) {
    const std::string& method = runs[i].name;
    if (std::find(methods.begin(), methods.end(), method) == methods.end()) continue;
    const size_t begin = found.size();
    int64_t last = -1;
    for (const Record& record : runs[i].records) {
      if (!metrics.contains(record.metric) || measure::is_of_other_weights(record)) continue;
      if (!std::isfinite(record.value)) continue;
      last = std::max(last, measure::step_of(record));
      found.push_back({i, method, &record});
    }
    const auto is_old = [&](const Found& each) { return measure::step_of(*each.record) != last; };
    found.erase(
        std::remove_if(found.begin() + static_cast<std::ptrdiff_t>(begin), found.end(), is_old),
        found.end());
    for (size_t j = begin; j < found.size(); ++j) {
      Ground& ground = grounds[ground_of(*found[j].record)];
      ground.runs.insert(i);
      ground.is_fair |= is_fair(*found[j].record);
    }
  }
  if (grounds.size() < 2) return found;
  const auto most =
      std::max_element(grounds.begin(), grounds.end(), [](const auto& a, const auto& b) {
        return std::pair(a.second.runs.size(), a.second.is_fair) <
               std::pair(b.second.runs.size(), b.second.is_fair);
      });
  std::erase_if(found, [&](const Found& each) { return ground_of(*each.record) != most->first; });
  const std::string names = join({metrics.begin(), metrics.end()});
  const size_t others = grounds.size() - 1;
  problems.push_back("charts: " + names + ": drawn on " + most->first + ", which most runs have; " +
                     std::to_string(others) + " other kind" + (others > 1 ? "s" : "") +
                     " of pictures " + (others > 1 ? "are" : "is") +
                     " left out (the list of numbers has them)");
  return found;
}

/// Values of runs, by the number of the run: a later record of the same thing replaces an earlier.
struct Values {
  std::map<size_t, double> by_run;
  int64_t count = 0;  ///< pictures, the fewest

  void set(const Found& found) {
    by_run[found.run] = found.record->value;
    count = count == 0 ? found.record->count : std::min(count, found.record->count);
  }
};

/// Mean, low, high, seeds: the last columns of every table here.
std::vector<json> statistics(const std::map<size_t, double>& by_run) {
  double sum = 0, low = by_run.begin()->second, high = low;
  for (const auto& [run, value] : by_run) {
    sum += value;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  const bool has_range = by_run.size() > 1;
  return {chart_number(sum / static_cast<double>(by_run.size())),
          has_range ? chart_number(low) : json(), has_range ? chart_number(high) : json(),
          by_run.size()};
}

/// Methods in their order, so that tables read like legends.
size_t place_of(const std::vector<std::string>& methods, const std::string& method) {
  return static_cast<size_t>(std::find(methods.begin(), methods.end(), method) - methods.begin());
}

void warn_of_full(const DataTable& table, const char* name, std::vector<std::string>& problems) {
  if (table.size() < kMaxRobustnessRows) return;
  problems.push_back(std::string("charts: of ") + name + " the first " +
                     std::to_string(kMaxRobustnessRows) + " points are drawn");
}

/// A comparison has named those of its columns already.
void note_flags(const RunData& run, const Record& record, std::vector<std::string>& problems) {
  const measure::AttackKind attack = measure::attack_of(record);
  for (const std::string& doubt : measure::attack_doubts(record)) {
    add_once(measure::doubt_text(run.folder.string(), attack, doubt), problems);
  }
  for (const std::string& remark : measure::attack_remarks(record)) {
    add_once(measure::remark_text(attack, remark), problems);
  }
}

DataTable attack_table(const std::vector<RunData>& runs,
                       const std::vector<std::string>& methods,
                       const measure::TaskMeasures& measures,
                       std::vector<std::string>& problems) {
  // is published, attack, place of the method, gradient, eps
  using Key = std::tuple<bool, std::string, size_t, std::string, double>;
  std::map<Key, Values> points;
  const measure::RobustnessRecords& records = measures.robustness;
  for (const Found& found :
       find_records(runs, methods, {records.undamaged, records.attacked}, problems)) {
    const Record& record = *found.record;
    if (record.metric == records.attacked) note_flags(runs[found.run], record, problems);
    const double eps = record.metric == records.undamaged
                           ? 0
                           : kSteps * measure::number_label(record, "eps").value_or(std::nan(""));
    if (!std::isfinite(eps)) continue;
    const std::string options = measure::label_text(record, "attack_options");
    points[{measure::label_text(record, "profile") == "published",
            measure::label_text(record, "attack") + (options.empty() ? "" : ", " + options),
            place_of(methods, found.method), measure::label_text(record, "metric_gradient"), eps}]
        .set(found);
  }
  DataTable table({"attack", "profile", "method", "metric_gradient", "eps", measures.main().name,
                   "low", "high", "seeds", "pictures"});
  std::set<std::pair<bool, std::string>> charts;
  for (const auto& [key, values] : points) {
    const auto& [is_published, attack, place, gradient, eps] = key;
    charts.insert({is_published, attack});
    if (charts.size() > kMaxAttackCharts || table.size() == kMaxRobustnessRows) {
      problems.push_back("charts: at most " + std::to_string(kMaxAttackCharts) + " attacks with " +
                         std::to_string(kMaxRobustnessRows) + " points are drawn");
      break;
    }
    const std::vector<json> of_seeds = statistics(values.by_run);
    table.add({attack, is_published ? "published" : "strict", methods[place], gradient,
               chart_number(eps), of_seeds[0], of_seeds[1], of_seeds[2], of_seeds[3],
               values.count});
  }
  return table;
}

/// corruption -> severity -> run -> accuracy
using Accuracies = std::map<std::string, std::map<int64_t, std::map<size_t, double>>>;

/// Means over `parts`, of the runs that have all of them: method -> run -> mean.
std::map<size_t, std::map<size_t, double>> means_of(
    const std::vector<const std::map<size_t, double>*>& parts,
    const std::vector<RunData>& runs,
    const std::vector<std::string>& methods) {
  std::map<size_t, std::map<size_t, double>> means;
  for (const auto& first : *parts.front()) {
    const size_t run = first.first;
    double sum = 0;
    const bool is_whole = std::all_of(parts.begin(), parts.end(), [&](const auto* part) {
      const auto value = part->find(run);
      if (value != part->end()) sum += value->second;
      return value != part->end();
    });
    if (is_whole) {
      means[place_of(methods, runs[run].name)][run] = sum / static_cast<double>(parts.size());
    }
  }
  return means;
}

/// Those of `by_name` that each run has which has any of them.
template <class Name>
std::vector<const std::map<size_t, double>*> shared_by_all(
    const std::map<Name, std::map<size_t, double>>& by_name) {
  std::set<size_t> all;
  for (const auto& [name, by_run] : by_name) {
    for (const auto& [run, value] : by_run) all.insert(run);
  }
  std::vector<const std::map<size_t, double>*> shared;
  for (const auto& [name, by_run] : by_name) {
    if (by_run.size() == all.size()) shared.push_back(&by_run);
  }
  return shared;
}

void add_corruption_tables(const std::vector<RunData>& runs,
                           const std::vector<std::string>& methods,
                           const measure::TaskMeasures& measures,
                           ChartData& data,
                           std::vector<std::string>& problems) {
  Accuracies accuracies;
  std::set<size_t> measured;
  for (const Found& found :
       find_records(runs, methods, {measures.robustness.by_damage}, problems)) {
    accuracies[measure::label_text(*found.record, "corruption_name")]
              [measure::whole_label(*found.record, "corruption_severity").value_or(0)][found.run] =
                  found.record->value;
    measured.insert(found.run);
  }
  DataTable corruptions(
      {"corruption", "method", measures.main().name, "low", "high", "seeds", "severities"});
  DataTable severities(
      {"corruption", "method", "severity", measures.main().name, "low", "high", "seeds"});
  const auto add_severities = [&](const std::string& name, int64_t severity, const auto& parts) {
    for (const auto& [place, by_run] : means_of(parts, runs, methods)) {
      if (severities.size() == kMaxRobustnessRows) return;
      const std::vector<json> of_seeds = statistics(by_run);
      severities.add(
          {name, methods[place], severity, of_seeds[0], of_seeds[1], of_seeds[2], of_seeds[3]});
    }
  };

  // The mean over corruptions is of those that every run has at every severity.
  std::set<int64_t> all_severities;
  for (const auto& [name, by_severity] : accuracies) {
    for (const auto& [severity, by_run] : by_severity) all_severities.insert(severity);
  }
  std::vector<const std::map<int64_t, std::map<size_t, double>>*> whole;
  for (const auto& [name, by_severity] : accuracies) {
    const bool is_whole =
        by_severity.size() == all_severities.size() &&
        std::all_of(by_severity.begin(), by_severity.end(),
                    [&](const auto& entry) { return entry.second.size() == measured.size(); });
    if (is_whole) whole.push_back(&by_severity);
  }
  if (whole.size() > 1) {
    for (const int64_t severity : all_severities) {
      std::vector<const std::map<size_t, double>*> parts;
      for (const auto* by_severity : whole) parts.push_back(&by_severity->at(severity));
      add_severities("mean of " + std::to_string(whole.size()), severity, parts);
    }
  }
  for (const auto& [name, by_severity] : accuracies) {
    for (const auto& [severity, by_run] : by_severity) {
      add_severities(name, severity, std::vector{&by_run});
    }
    const auto shared = shared_by_all(by_severity);
    if (shared.empty()) continue;
    for (const auto& [place, by_run] : means_of(shared, runs, methods)) {
      if (corruptions.size() == kMaxRobustnessRows) break;
      const std::vector<json> of_seeds = statistics(by_run);
      corruptions.add({name, methods[place], of_seeds[0], of_seeds[1], of_seeds[2], of_seeds[3],
                       shared.size()});
    }
  }
  warn_of_full(corruptions, "corruptions", problems);
  warn_of_full(severities, "severities", problems);
  data.emplace("corruptions", std::move(corruptions));
  data.emplace("severities", std::move(severities));
}

DataTable error_table(const std::vector<RunData>& runs,
                      const std::vector<std::string>& methods,
                      const measure::TaskMeasures& measures,
                      std::vector<std::string>& problems) {
  DataTable table({"metric", "method", "error", "low", "high", "seeds"});
  for (const auto& [metric, title] : measures.robustness.errors) {
    std::map<size_t, Values> by_method;
    for (const Found& found : find_records(runs, methods, {metric}, problems)) {
      by_method[place_of(methods, found.method)].set(found);
    }
    for (const auto& [place, values] : by_method) {
      const std::vector<json> of_seeds = statistics(values.by_run);
      table.add({metric, methods[place], of_seeds[0], of_seeds[1], of_seeds[2], of_seeds[3]});
    }
  }
  return table;
}

}  // namespace

void add_attack_data(const std::vector<RunData>& runs,
                     const std::vector<std::string>& methods,
                     const measure::TaskMeasures& measures,
                     ChartData& data,
                     std::vector<std::string>& problems) {
  data.emplace("attacks", attack_table(runs, methods, measures, problems));
}

void add_corruption_data(const std::vector<RunData>& runs,
                         const std::vector<std::string>& methods,
                         const measure::TaskMeasures& measures,
                         ChartData& data,
                         std::vector<std::string>& problems) {
  add_corruption_tables(runs, methods, measures, data, problems);
  data.emplace("corruption_errors", error_table(runs, methods, measures, problems));
}

}  // namespace elliptical::report
