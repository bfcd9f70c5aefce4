// SPDX-License-Identifier: MIT
#include "elliptical/report/run_selection.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "elliptical/base/config.h"
#include "elliptical/measure/measurements.h"

namespace elliptical::report {
namespace {

using Values = std::map<std::string, std::string>;

constexpr const char* kSteps = "train.steps";
constexpr const char* kAttention = "task.model.attention.";
/// What runs of one name may differ in: a matched constant has the mean of its own pair.
constexpr const char* kMatchedValue = "task.model.attention.metric.value";

struct Candidate {
  const RunData* run;
  Values values;
  std::string value(const std::string& key) const {
    const auto found = values.find(key);
    return found == values.end() ? "" : found->second;
  }
  std::string text() const { return run->folder.string(); }
};

/// The key that most candidates have; of equally frequent ones the largest.
template <class Key>
std::string most_frequent(const std::vector<Candidate>& candidates, Key key) {
  std::map<std::string, int> counts;
  for (const Candidate& candidate : candidates) ++counts[key(candidate)];
  const auto most =
      std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) {
        // Numbers as text: the longer one is the larger.
        return std::make_tuple(a.second, a.first.size(), a.first) <
               std::make_tuple(b.second, b.first.size(), b.first);
      });
  return most->first;
}

/// Keeps those for which `problem` is empty.
template <class Problem>
void keep(std::vector<Candidate>& candidates, std::vector<std::string>& problems, Problem problem) {
  std::vector<Candidate> kept;
  for (Candidate& candidate : candidates) {
    const std::string text = problem(candidate);
    if (text.empty()) {
      kept.push_back(std::move(candidate));
    } else {
      problems.push_back(text);
    }
  }
  candidates = std::move(kept);
}

std::string topic(const Candidate& candidate) {
  return candidate.run->task + " on " + candidate.value("task.data.name");
}

/// "KEY: A and B" for the first key of the two that differs and for which `counts` holds; "": none.
template <class Counts>
std::string first_difference(const Candidate& a, const Candidate& b, Counts counts) {
  std::set<std::string> keys;
  for (const auto& [key, value] : a.values) keys.insert(key);
  for (const auto& [key, value] : b.values) keys.insert(key);
  for (const std::string& key : keys) {
    if (key == "seed" || key == "name" || !counts(key) || a.value(key) == b.value(key)) continue;
    const auto shown = [&](const Candidate& c) {
      return c.values.contains(key) ? c.value(key) : std::string("nothing");
    };
    return key + ": " + shown(a) + " and " + shown(b);
  }
  return "";
}

/// Says where runs of one name, or methods, differ in what they must share.
void note_differences(const std::vector<Candidate>& candidates,
                      const std::string& reference_name,
                      std::vector<std::string>& problems) {
  if (candidates.empty()) return;
  const auto found = std::find_if(candidates.begin(), candidates.end(), [&](const Candidate& c) {
    return c.run->name == reference_name;
  });
  const Candidate& reference = found == candidates.end() ? candidates.front() : *found;
  std::map<std::string, const Candidate*> first_of_name;
  std::set<std::string> told;
  for (const Candidate& candidate : candidates) {
    const auto [first, is_new] = first_of_name.emplace(candidate.run->name, &candidate);
    if (!is_new) {
      const std::string difference = first_difference(
          *first->second, candidate, [](const std::string& key) { return key != kMatchedValue; });
      if (!difference.empty() && told.insert(candidate.run->name).second) {
        problems.push_back(candidate.run->name + ": runs of one name must have the same recipe, " +
                           first->second->text() + " and " + candidate.text() + " differ in " +
                           difference + " (give one of them another name: --set name=...)");
      }
      continue;
    }
    const std::string difference = first_difference(
        reference, candidate, [](const std::string& key) { return !key.starts_with(kAttention); });
    if (!difference.empty()) {
      problems.push_back(candidate.run->name + ": must differ from " + reference.run->name +
                         " in its attention only, differs in " + difference +
                         " (their difference is not one of attention alone)");
    }
  }
}

}  // namespace

RunSelection select_runs(const std::vector<RunData>& runs, const std::string& reference) {
  RunSelection selection;
  if (runs.empty()) return selection;
  std::vector<Candidate> candidates;
  for (const RunData& run : runs)
    candidates.push_back({&run, recipe_values(run.config, run.folder)});

  const std::string common = most_frequent(candidates, topic);
  keep(candidates, selection.problems, [&](const Candidate& candidate) {
    if (topic(candidate) == common) return std::string();
    return candidate.text() + ": must be " + common + " like the others, is " + topic(candidate) +
           " (left out; compare it in a folder of its own)";
  });
  selection.task = candidates.front().run->task;
  selection.data = candidates.front().value("task.data.name");

  keep(candidates, selection.problems, [&](const Candidate& candidate) {
    const int64_t last = measure::last_measured_step(candidate.run->records);
    const std::string steps = candidate.value(kSteps);
    if (last >= 0 && std::to_string(last) == steps) return std::string();
    return candidate.text() + ": must be finished and measured after step " + steps + ", " +
           (last < 0 ? std::string("has no records")
                     : "its last records are of step " + std::to_string(last)) +
           " (left out; elliptical resume " + candidate.text() + ")";
  });

  std::map<std::string, std::vector<Candidate>> by_name;
  for (const Candidate& candidate : candidates) by_name[candidate.run->name].push_back(candidate);
  std::map<std::string, std::string> steps_of;
  for (const auto& [name, group] : by_name) {
    steps_of[name] = most_frequent(group, [](const Candidate& c) { return c.value(kSteps); });
  }
  std::set<std::pair<std::string, int64_t>> seen;
  keep(candidates, selection.problems, [&](const Candidate& candidate) {
    const RunData& run = *candidate.run;
    const std::string& steps = steps_of.at(run.name);
    if (candidate.value(kSteps) != steps) {
      return candidate.text() + ": runs of " + run.name + " must have equally many steps, has " +
             candidate.value(kSteps) + " instead of " + steps +
             " (left out; train it again with --set train.steps=" + steps +
             ", or give it another name: --set name=...)";
    }
    if (!seen.emplace(run.name, run.seed).second) {
      return candidate.text() + ": there is another run of " + run.name + " with seed " +
             std::to_string(run.seed) +
             " (left out; give one of them another name: --set name=..., or move it away)";
    }
    return std::string();
  });

  note_differences(candidates, reference, selection.problems);
  for (const Candidate& candidate : candidates) {
    selection.runs.push_back({candidate.run, measure::last_measured_step(candidate.run->records)});
  }
  return selection;
}

}  // namespace elliptical::report
