// SPDX-License-Identifier: MIT
#include "elliptical/run/attack_state.h"

#include <torch/torch.h>

#include <algorithm>

#include "elliptical/base/errors.h"
#include "elliptical/measure/labels.h"

namespace elliptical::run {
namespace {

constexpr const char* kMetric = "attacked_batch";  // its value is the number of robust pictures
constexpr const char* kStage = "stage_";           // stage_0_apgd-ce: pictures robust after it
constexpr const char* kOutcomes = "outcomes";      // "1101": the third picture is not robust

Record to_record(const std::string& digest, int64_t batch, const AttackScore& score) {
  Record record{.metric = kMetric,
                .value = static_cast<double>(score.robust_top1),
                .count = score.count,
                .labels = {{"digest", digest},
                           {"batch", batch},
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
    const auto& [attack, robust] = score.stages[i];
    record.labels[kStage + std::to_string(i) + "_" + attack] = robust;
  }
  return record;
}

using measure::required_label;

AttackScore to_score(const Record& record) {
  AttackScore score{.count = record.count,
                    .clean_top1 = required_label<int64_t>(record, "clean_top1"),
                    .clean_top5 = required_label<int64_t>(record, "clean_top5"),
                    .robust_top1 = required_label<int64_t>(record, "robust_top1"),
                    .robust_top5 = required_label<int64_t>(record, "robust_top5"),
                    .seconds = required_label<double>(record, "seconds"),
                    .is_randomised = required_label<bool>(record, "randomised"),
                    .looks_like_probabilities = required_label<bool>(record, "probabilities"),
                    .has_few_classes = required_label<bool>(record, "few_classes"),
                    .num_zero_gradients = required_label<int64_t>(record, "zero_gradients")};
  if (record.labels.contains(kOutcomes)) {
    score.outcomes = required_label<std::string>(record, kOutcomes);
    const auto num_robust = std::count(score.outcomes.begin(), score.outcomes.end(), '1');
    if (static_cast<int64_t>(score.outcomes.size()) != score.count ||
        num_robust != score.robust_top1) {
      throw DataError("label " + std::string(kOutcomes) + " does not fit the counts");
    }
  }
  for (const auto& [name, value] : record.labels) {  // in the order of their numbers: below 10
    if (!name.starts_with(kStage)) continue;
    const size_t end_of_number = name.find('_', std::string(kStage).size());
    score.stages.emplace_back(name.substr(end_of_number + 1),
                              required_label<int64_t>(record, name));
  }
  return score;
}

}  // namespace

void AttackScore::add(const AttackScore& other) {
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
  if (stages.empty()) stages.resize(other.stages.size());
  for (size_t i = 0; i < other.stages.size(); ++i) {
    stages[i].first = other.stages[i].first;
    stages[i].second += other.stages[i].second;
  }
}

AttackState::AttackState(const std::filesystem::path& path, const Notice& notice)
    : path_(path), notice_(notice), writer_(path) {
  const auto damaged = [&](const std::string& line) {
    if (notice) notice(line + " (its batch is attacked again)");
  };
  for (const Record& record : read_records(path, damaged)) {
    try {
      const std::pair key(required_label<std::string>(record, "digest"),
                          required_label<int64_t>(record, "batch"));
      finished_[key] = to_score(record);
    } catch (const DataError& error) {
      damaged(path.string() + ": " + error.what());
    }
  }
}

const AttackScore* AttackState::find(const std::string& digest, int64_t batch, int64_t count) {
  const auto found = finished_.find({digest, batch});
  if (found == finished_.end() || found->second.count != count) return nullptr;
  if (count == 0 || !found->second.outcomes.empty()) return &found->second;
  if (notice_ && !has_told_) {
    notice_(path_.string() +
            ": some batches are of an earlier version, which did not say what became of each "
            "picture (they are attacked again)");
  }
  has_told_ = true;
  return nullptr;
}

void AttackState::append(const std::string& digest, int64_t batch, const AttackScore& score) {
  writer_.append(to_record(digest, batch, score));
  writer_.sync();
}

}  // namespace elliptical::run
