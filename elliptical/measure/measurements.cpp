// SPDX-License-Identifier: MIT
#include "elliptical/measure/measurements.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "elliptical/measure/attack_flags.h"
#include "elliptical/measure/labels.h"

namespace elliptical::measure {
namespace {

/// Whether a part of the data stands for all of them: neighbours among pictures may be of one
/// class.
bool is_fair_block(const Record& record, const TaskMeasures& measures) {
  return !measures.has_balanced_blocks || label_text(record, kCut) == kBalancedCut;
}

/// The place in `numbers` that a record belongs to; their number: none.
size_t place_of(const Record& record,
                const Circumstances& circumstances,
                const TaskMeasures& measures) {
  const std::string targets = is_block(record) ? label_text(record, "targets") : "";
  const auto is_it = [&](const ComparedNumber& number) {
    if (number.condition != circumstances.condition) return false;
    if (number.perturbation != circumstances.perturbation) return false;
    return is_block(record) ? record.metric == number.block_metric && targets == number.targets
                            : record.metric == number.metric;
  };
  const auto& numbers = measures.numbers;
  return static_cast<size_t>(std::find_if(numbers.begin(), numbers.end(), is_it) - numbers.begin());
}

/// Blocks come in order, and so do the classes of one; when it starts again, the data were measured
/// once more.
void add_block(Measurement& measurement, const Record& record, const Measure& measure) {
  std::vector<Block>& blocks = measurement.blocks;
  const int64_t index = whole_label(record, "block").value_or(0);
  const bool is_ratio = measure.whole == Whole::kRatioOfSums;
  const Ratio ratio{.of_class = whole_label(record, kClass).value_or(0),
                    .numerator = number_label(record, kNumerator).value_or(0),
                    .denominator = number_label(record, kDenominator).value_or(0)};
  if (is_ratio && !blocks.empty() && index == blocks.back().index &&
      ratio.of_class > blocks.back().ratios.back().of_class) {
    blocks.back().ratios.push_back(ratio);
    return;
  }
  if (!blocks.empty() && index <= blocks.back().index) blocks.clear();
  blocks.push_back({.index = index, .value = record.value, .count = record.count});
  if (is_ratio) blocks.back().ratios.push_back(ratio);
}

std::vector<size_t> all_of(const std::vector<Block>& blocks) {
  std::vector<size_t> places(blocks.size());
  std::iota(places.begin(), places.end(), size_t{0});
  return places;
}

/// Blocks are all of the data or nothing: an evaluation may have been killed while it wrote them.
void drop_incomplete_blocks(Measurement& measurement, const Measure& measure) {
  int64_t count = 0;
  for (const Block& block : measurement.blocks) count += block.count;
  bool is_whole = count == measurement.count;
  if (is_whole && measure.whole == Whole::kRatioOfSums) {
    // Of the last block some classes may be missing; then the sums are others.
    constexpr double kRounding = 1e-6;
    const auto value = whole_of(measure, measurement.blocks, all_of(measurement.blocks));
    is_whole = value && std::abs(*value - measurement.value) <=
                            kRounding * std::max(std::abs(measurement.value), measure.scale);
  }
  if (!is_whole) measurement.blocks.clear();
}

}  // namespace

Record ratio_record(const std::string& metric,
                    double numerator,
                    double denominator,
                    int64_t count,
                    std::map<std::string, LabelValue> labels) {
  labels[kNumerator] = numerator;
  labels[kDenominator] = denominator;
  return {.metric = metric,
          .value = denominator > 0 ? numerator / denominator : 0,
          .count = count,
          .labels = std::move(labels)};
}

std::optional<double> whole_of(const Measure& measure,
                               const std::vector<Block>& blocks,
                               const std::vector<size_t>& drawn) {
  if (measure.whole == Whole::kMean) {
    double sum = 0, weight = 0;
    for (const size_t place : drawn) {
      const auto count = static_cast<double>(blocks[place].count);
      sum += count * blocks[place].value;
      weight += count;
    }
    return weight > 0 ? std::optional(measure.from_level(sum / weight)) : std::nullopt;
  }
  std::map<int64_t, Ratio> sums;
  for (const size_t place : drawn) {
    for (const Ratio& ratio : blocks[place].ratios) {
      Ratio& sum = sums[ratio.of_class];
      sum.numerator += ratio.numerator;
      sum.denominator += ratio.denominator;
    }
  }
  double total = 0;
  int64_t num_classes = 0;
  for (const auto& [of_class, sum] : sums) {
    if (sum.denominator <= 0) continue;  // a class that is neither there nor said to be
    total += sum.numerator / sum.denominator;
    ++num_classes;
  }
  if (num_classes == 0) return std::nullopt;
  return measure.scale * total / static_cast<double>(num_classes);
}

bool is_clean_number(const Record& record, const TaskMeasures& measures) {
  const auto circumstances = circumstances_of(record, measures);
  return circumstances && circumstances->condition == Condition::kClean && !is_block(record) &&
         place_of(record, *circumstances, measures) != measures.numbers.size();
}

int64_t last_measured_step(const std::vector<Record>& records) {
  int64_t last = -1;
  for (const Record& record : records) last = std::max(last, step_of(record));
  return last;
}

Measurements measurements_at(const std::vector<Record>& records,
                             int64_t step,
                             const TaskMeasures& measures) {
  // Records that training wrote say what the scope was in training.
  const auto of_training = std::find_if(records.begin(), records.end(), [](const Record& record) {
    return source_of(record) == Source::kTraining;
  });
  Measurements result;
  for (size_t i = 0; i < records.size(); ++i) {
    const Record& record = records[i];
    if (step_of(record) != step || is_of_other_weights(record)) continue;
    const auto circumstances = circumstances_of(record, measures);
    if (!circumstances) continue;
    const size_t place = place_of(record, *circumstances, measures);
    if (place == measures.numbers.size()) continue;
    if (is_block(record) && !is_fair_block(record, measures)) continue;
    if (of_training != records.end() &&
        label_text(record, "metric_scope") != label_text(*of_training, "metric_scope")) {
      continue;
    }
    Measurement& measurement =
        result[*circumstances].try_emplace(place, Measurement{.place = i}).first->second;
    if (is_block(record)) {
      add_block(measurement, record, *measures.numbers[place].measure);
    } else {
      measurement.value = record.value;
      measurement.count = record.count;
      measurement.doubts = attack_doubts(record);
      measurement.remarks = attack_remarks(record);
      measurement.num_classes = whole_label(record, "classes").value_or(0);
    }
  }
  for (auto& [circumstances, by_measure] : result) {
    std::erase_if(by_measure, [](const auto& entry) { return entry.second.count == 0; });
    for (auto& [place, measurement] : by_measure) {
      drop_incomplete_blocks(measurement, *measures.numbers[place].measure);
    }
  }
  return result;
}

}  // namespace elliptical::measure
