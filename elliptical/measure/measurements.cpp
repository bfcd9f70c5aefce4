// SPDX-License-Identifier: MIT
#include "elliptical/measure/measurements.h"

#include <algorithm>

#include "elliptical/measure/attack_flags.h"
#include "elliptical/measure/labels.h"

namespace elliptical::measure {
namespace {

/// Whether a part of the data stands for all of them: neighbours among pictures may be of one
/// class.
bool is_fair_block(const Record& record, const Measure& measure) {
  return measure.quantity == &kPerplexity || label_text(record, "cut") == "balanced";
}

/// The place in kMeasures that a record belongs to; kMeasures.size(): none.
size_t measure_of(const Record& record, Condition condition) {
  const std::string targets = is_block(record) ? label_text(record, "targets") : "";
  const auto* found = std::find_if(kMeasures.begin(), kMeasures.end(), [&](const Measure& measure) {
    if (measure.condition != condition) return false;
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

bool is_clean_measure(const Record& record) {
  return condition_of(record) == Condition::kClean && !is_block(record) &&
         measure_of(record, Condition::kClean) != kMeasures.size();
}

int64_t last_measured_step(const std::vector<Record>& records) {
  int64_t last = -1;
  for (const Record& record : records) last = std::max(last, step_of(record));
  return last;
}

Measurements measurements_at(const std::vector<Record>& records, int64_t step) {
  // Records that training wrote say what the scope was in training.
  const auto of_training = std::find_if(records.begin(), records.end(), [](const Record& record) {
    return source_of(record) == Source::kTraining;
  });
  Measurements result;
  for (size_t i = 0; i < records.size(); ++i) {
    const Record& record = records[i];
    const std::optional<Condition> condition = condition_of(record);
    if (step_of(record) != step || !condition || is_of_other_weights(record)) continue;
    const size_t measure = measure_of(record, *condition);
    if (measure == kMeasures.size()) continue;
    if (is_block(record) && !is_fair_block(record, kMeasures[measure])) continue;
    if (of_training != records.end() &&
        label_text(record, "metric_scope") != label_text(*of_training, "metric_scope")) {
      continue;
    }
    Measurement& measurement = result[circumstances_of(record)]
                                   .try_emplace(measure, Measurement{.place = i})
                                   .first->second;
    if (is_block(record)) {
      add_block(measurement,
                {whole_label(record, "block").value_or(0), record.value, record.count});
    } else {
      measurement.value = record.value;
      measurement.count = record.count;
      measurement.doubts = attack_doubts(record);
      measurement.num_classes = whole_label(record, "classes").value_or(0);
    }
  }
  for (auto& [circumstances, by_measure] : result) {
    std::erase_if(by_measure, [](const auto& entry) { return entry.second.count == 0; });
    for (auto& [measure, measurement] : by_measure) drop_incomplete_blocks(measurement);
  }
  return result;
}

}  // namespace elliptical::measure
