// SPDX-License-Identifier: MIT
#include "elliptical/measure/attack_score.h"

#include <algorithm>
#include <cmath>

#include "elliptical/base/errors.h"
#include "elliptical/base/printable.h"
#include "elliptical/measure/labels.h"

namespace elliptical::measure {
namespace {

constexpr const char* kMetric = "attacked_batch";  // its value is the number of robust pictures
constexpr const char* kStage = "stage_";           // stage_0_apgd-ce: pictures robust after it
constexpr const char* kOutcomes = "outcomes";      // "1101": the third picture is not robust
constexpr int64_t kMaxStages = 10;                 // their numbers have one digit
// Of a batch, and gradients of a batch: sums over all batches stay whole numbers.
constexpr int64_t kMaxCount = int64_t{1} << 40;

int64_t count_label(const Record& record, const std::string& name, int64_t largest) {
  const auto value = required_label<int64_t>(record, name);
  if (value < 0 || value > largest) {
    throw DataError("label " + printable(name) + " must be 0 to " + std::to_string(largest) +
                    ", is " + std::to_string(value));
  }
  return value;
}

std::string stage_prefix(size_t number) { return kStage + std::to_string(number) + "_"; }

/// stage_0_..., stage_1_...: the order of labels is that of their numbers.
void read_stages(const Record& record, AttackScore& score) {
  for (auto it = record.labels.lower_bound(kStage);
       it != record.labels.end() && it->first.starts_with(kStage); ++it) {
    const std::string prefix = stage_prefix(score.stages.size());
    if (std::ssize(score.stages) == kMaxStages || !it->first.starts_with(prefix)) {
      throw DataError("label " + printable(it->first.substr(0, 60)) +
                      ": stages must be numbered from 0 to " + std::to_string(kMaxStages - 1) +
                      ", each once");
    }
    score.stages.emplace_back(it->first.substr(prefix.size()),
                              count_label(record, it->first, score.count));
  }
}

}  // namespace

void AttackScore::add(const AttackScore& other) {
  if (stages.empty()) {
    for (const auto& stage : other.stages) stages.emplace_back(stage.first, 0);
  }
  const bool fits =
      std::equal(other.stages.begin(), other.stages.end(), stages.begin(), stages.end(),
                 [](const auto& added, const auto& own) { return added.first == own.first; });
  if (!fits && !other.stages.empty()) {
    throw DataError(
        "attacks.jsonl: batches of one case must have the same stages, have others (remove the "
        "file to attack again)");
  }
  count += other.count;
  clean_top1 += other.clean_top1;
  clean_top5 += other.clean_top5;
  robust_top1 += other.robust_top1;
  robust_top5 += other.robust_top5;
  seconds += other.seconds;
  is_randomised |= other.is_randomised;
  looks_like_probabilities |= other.looks_like_probabilities;
  has_few_classes |= other.has_few_classes;
  num_zero_gradients += other.num_zero_gradients;
  outcomes += other.outcomes;
  for (size_t i = 0; i < other.stages.size(); ++i) stages[i].second += other.stages[i].second;
}

Record to_record(const AttackedBatch& batch) {
  const AttackScore& score = batch.score;
  Record record{.metric = kMetric,
                .value = static_cast<double>(score.robust_top1),
                .count = score.count,
                .labels = {{"digest", batch.digest},
                           {"batch", batch.batch},
                           {"clean_top1", score.clean_top1},
                           {"clean_top5", score.clean_top5},
                           {"robust_top1", score.robust_top1},
                           {"robust_top5", score.robust_top5},
                           {"seconds", score.seconds},
                           {"randomised", score.is_randomised},
                           {"probabilities", score.looks_like_probabilities},
                           {"few_classes", score.has_few_classes},
                           {"zero_gradients", score.num_zero_gradients},
                           {kOutcomes, score.outcomes}}};
  for (size_t i = 0; i < score.stages.size(); ++i) {
    record.labels[stage_prefix(i) + score.stages[i].first] = score.stages[i].second;
  }
  return record;
}

AttackedBatch to_attacked_batch(const Record& record) {
  if (record.count < 0 || record.count > kMaxCount) {
    throw DataError("count must be 0 to " + std::to_string(kMaxCount) + ", is " +
                    std::to_string(record.count));
  }
  AttackedBatch batch{.digest = required_label<std::string>(record, "digest"),
                      .batch = required_label<int64_t>(record, "batch"),
                      .score = {.count = record.count}};
  AttackScore& score = batch.score;
  score.clean_top1 = count_label(record, "clean_top1", record.count);
  score.clean_top5 = count_label(record, "clean_top5", record.count);
  score.robust_top1 = count_label(record, "robust_top1", record.count);
  score.robust_top5 = count_label(record, "robust_top5", record.count);
  score.seconds = required_label<double>(record, "seconds");
  score.is_randomised = required_label<bool>(record, "randomised");
  score.looks_like_probabilities = required_label<bool>(record, "probabilities");
  score.has_few_classes = required_label<bool>(record, "few_classes");
  score.num_zero_gradients = count_label(record, "zero_gradients", kMaxCount);
  if (!std::isfinite(score.seconds) || score.seconds < 0) {
    throw DataError("label seconds must be a number of seconds, is none");
  }
  if (record.labels.contains(kOutcomes)) {
    score.outcomes = required_label<std::string>(record, kOutcomes);
    const auto num_robust = std::count(score.outcomes.begin(), score.outcomes.end(), '1');
    if (std::ssize(score.outcomes) != score.count || num_robust != score.robust_top1) {
      throw DataError("label " + std::string(kOutcomes) + " does not fit the counts");
    }
  }
  read_stages(record, score);
  return batch;
}

}  // namespace elliptical::measure
