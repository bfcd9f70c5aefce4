// SPDX-License-Identifier: MIT
#include "elliptical/report/measurement.h"

#include <algorithm>
#include <cstdio>
#include <optional>

namespace elliptical::report {
namespace {

constexpr std::array kReading = {"data", "method", "window", "columns", "stride", "max_pictures"};
constexpr std::array kDamage = {"perturbation", "profile", "swap_seed", "swap_unit",
                                "corruption_seed"};

double number_label(const Record& record, const std::string& name) {
  const auto found = record.labels.find(name);
  if (found == record.labels.end()) return 0;
  if (const auto* number = std::get_if<double>(&found->second)) return *number;
  if (const auto* whole = std::get_if<int64_t>(&found->second)) return static_cast<double>(*whole);
  return 0;
}

int64_t step_of(const Record& record) {
  const auto found = record.labels.find("step");
  const auto* step = found == record.labels.end() ? nullptr : std::get_if<int64_t>(&found->second);
  return step == nullptr ? -1 : *step;
}

bool is_block(const Record& record) { return record.labels.contains("block"); }

/// Whether the data were damaged; nothing where something else was done to them, by an attack for
/// instance.
std::optional<bool> is_damaged(const Record& record) {
  const std::string perturbation = label_text(record, "perturbation");
  if (perturbation == "none") return false;
  if (perturbation == "word_swap" || perturbation == "corruption") return true;
  return std::nullopt;
}

/// The place in kMeasures that a record belongs to; kMeasures.size(): none.
size_t measure_of(const Record& record, bool damaged) {
  const std::string targets = is_block(record) ? label_text(record, "targets") : "";
  const auto* found = std::find_if(kMeasures.begin(), kMeasures.end(), [&](const Measure& measure) {
    if (measure.damaged != damaged) return false;
    return is_block(record) ? record.metric == measure.block_metric && targets == measure.targets
                            : record.metric == measure.metric;
  });
  return static_cast<size_t>(found - kMeasures.begin());
}

/// Blocks come in order; when it starts again, the data were measured once more.
void add_block(Measurement& measurement, const Block& block) {
  std::vector<Block>& blocks = measurement.blocks;
  if (!blocks.empty() && block.index <= blocks.back().index) blocks.clear();
  blocks.push_back(block);
}

/// Blocks are all of the data or nothing: an evaluation may have been killed while it wrote them.
void drop_incomplete_blocks(Measurement& measurement) {
  int64_t count = 0;
  for (const Block& block : measurement.blocks) count += block.count;
  if (count != measurement.count) measurement.blocks.clear();
}

}  // namespace

std::string label_text(const Record& record, const std::string& name) {
  const auto found = record.labels.find(name);
  if (found == record.labels.end()) return "";
  if (const auto* text = std::get_if<std::string>(&found->second)) return *text;
  if (const auto* whole = std::get_if<int64_t>(&found->second)) return std::to_string(*whole);
  if (const auto* flag = std::get_if<bool>(&found->second)) return *flag ? "true" : "false";
  char text[32];
  std::snprintf(text, sizeof text, "%.17g", std::get<double>(found->second));
  return text;
}

Circumstances circumstances_of(const Record& record) {
  Circumstances result{
      .split = label_text(record, "split"),
      .damaged = is_damaged(record).value_or(true),
      .strength = number_label(record, "swap_rate") + number_label(record, "severity"),
      .corruption = label_text(record, "corruption")};
  for (const char* name : kReading) result.reading += label_text(record, name) + "|";
  for (const char* name : kDamage) result.damage += label_text(record, name) + "|";
  return result;
}

bool is_clean_measure(const Record& record) {
  return is_damaged(record) == false && !is_block(record) &&
         measure_of(record, false) != kMeasures.size();
}

int64_t last_measured_step(const RunData& run) {
  int64_t last = -1;
  for (const Record& record : run.records) last = std::max(last, step_of(record));
  return last;
}

Measurements measurements_at(const RunData& run, int64_t step) {
  // Records that training wrote say what the scope was in training.
  const auto of_training =
      std::find_if(run.records.begin(), run.records.end(),
                   [](const Record& record) { return label_text(record, "source") != "eval"; });
  Measurements result;
  for (const Record& record : run.records) {
    const std::optional<bool> damaged = is_damaged(record);
    const bool is_average = record.labels.contains("weights");  // of the weights of many steps
    if (step_of(record) != step || !damaged || is_average) continue;
    const size_t measure = measure_of(record, *damaged);
    if (measure == kMeasures.size()) continue;
    if (of_training != run.records.end() &&
        label_text(record, "metric_scope") != label_text(*of_training, "metric_scope")) {
      continue;
    }
    Measurement& measurement = result[circumstances_of(record)][measure];
    if (is_block(record)) {
      add_block(measurement,
                {static_cast<int64_t>(number_label(record, "block")), record.value, record.count});
    } else {
      measurement.value = record.value;
      measurement.count = record.count;
    }
  }
  for (auto& [circumstances, by_measure] : result) {
    std::erase_if(by_measure, [](const auto& entry) { return entry.second.count == 0; });
    for (auto& [measure, measurement] : by_measure) drop_incomplete_blocks(measurement);
  }
  return result;
}

}  // namespace elliptical::report
