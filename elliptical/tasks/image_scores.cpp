// SPDX-License-Identifier: MIT
//
// From logits to records: image_evaluation.h.
#include <torch/torch.h>

#include <algorithm>
#include <map>

#include "elliptical/data/corrupt/mce.h"
#include "elliptical/measure/labels.h"
#include "elliptical/tasks/image_evaluation.h"
#include "elliptical/tasks/metric_scores.h"

namespace elliptical::tasks {
namespace {

constexpr double kPercent = 100.0;

/// Logits of the classes that the data have, in their order.
at::Tensor of_the_data(const at::Tensor& logits, const data::ImageSet& set) {
  const std::vector<int64_t>& columns = set.class_columns();
  return columns.empty() ? logits : logits.index_select(1, at::tensor(columns));
}

/// Which of the K classes are among the k most likely, (B) 0 or 1: as many as are above the label.
at::Tensor is_among(const at::Tensor& logits, const at::Tensor& labels, int64_t k) {
  const int64_t limit = std::min(k, logits.size(1));
  return (std::get<1>(logits.topk(limit, 1)) == labels.unsqueeze(1)).any(1).to(at::kDouble);
}

Record record_of(const char* name, const Scores::Sum& sum, const Scores::Labels& labels = {}) {
  return {.metric = name, .value = sum.mean(), .count = sum.count, .labels = labels};
}

/// Sums of single corruptions and severities, in all and in blocks; the latter are no records, the
/// mean corruption errors of blocks are.
constexpr const char* kCorrupted = "corrupted_accuracy";
constexpr const char* kBlockCorrupted = "block_corrupted_accuracy";

Scores::Labels block_labels(const LabelValue& block) {
  return {{"block", block}, {measure::kCut, std::string(measure::kBalancedCut)}};
}

/// Errors of the corruptions that were measured at all severities.
class WholeCorruptions {
 public:
  void add(const Scores::Labels& labels, const Scores::Sum& sum) {
    const Record record{.labels = labels};
    errors_[measure::required_label<std::string>(record, "corruption_name")]
           [measure::required_label<int64_t>(record, "corruption_severity")] =
               1 - sum.mean() / kPercent;
    count_ += sum.count;
  }

  int64_t count() const { return count_; }

  std::vector<data::CorruptionErrors> errors() const {
    std::vector<data::CorruptionErrors> result;
    for (const auto& [name, by_severity] : errors_) {
      if (by_severity.size() != data::kNumSeverities) continue;
      data::CorruptionErrors& whole = result.emplace_back(data::CorruptionErrors{.name = name});
      for (const auto& [severity, error] : by_severity) {
        whole.errors[static_cast<size_t>(severity - 1)] = error;
      }
    }
    return result;
  }

 private:
  std::map<std::string, std::map<int64_t, double>> errors_;
  int64_t count_ = 0;
};

/// Whether all corruptions of a group are there.
bool has_all(const std::vector<data::CorruptionErrors>& whole, data::CorruptionGroup group) {
  const auto& table = data::corruption_table();
  return std::all_of(table.begin(), table.end(), [&](const auto& entry) {
    return entry.group != group ||
           std::any_of(whole.begin(), whole.end(),
                       [&](const auto& measured) { return measured.name == entry.name; });
  });
}

/// mCE of each block. As mCE is linear in errors and each picture is damaged in all ways, that of
/// all pictures is their mean.
void add_block_errors(const Scores& scores, std::vector<Record>& records) {
  std::map<LabelValue, WholeCorruptions> blocks;
  for (const auto& [key, sum] : scores.sums) {
    if (key.first == kBlockCorrupted) blocks[key.second.at("block")].add(key.second, sum);
  }
  for (const auto& [block, corruptions] : blocks) {
    const std::vector<data::CorruptionErrors> whole = corruptions.errors();
    if (!has_all(whole, data::CorruptionGroup::kMain)) continue;
    records.push_back({.metric = "block_mce",
                       .value = data::mean_corruption_error(whole, data::CorruptionGroup::kMain),
                       .count = corruptions.count(),
                       .labels = block_labels(block)});
  }
}

void add_corruption_errors(const Scores& scores, int64_t count, std::vector<Record>& records) {
  WholeCorruptions corruptions;
  for (const auto& [key, sum] : scores.sums) {
    if (key.first == kCorrupted) corruptions.add(key.second, sum);
  }
  const std::vector<data::CorruptionErrors> whole = corruptions.errors();
  for (const auto& [group, name] : {std::pair(data::CorruptionGroup::kMain, "mce"),
                                    std::pair(data::CorruptionGroup::kExtra, "extra_mce")}) {
    if (has_all(whole, group)) {
      records.push_back({.metric = name,
                         .value = data::mean_corruption_error(whole, group),
                         .count = count,
                         .labels = {}});
    }
  }
  for (const data::CorruptionErrors& measured : whole) {
    records.push_back({.metric = "corruption_error",
                       .value = kPercent * data::corruption_error(measured),
                       .count = count,
                       .labels = {{"corruption_name", measured.name}}});
  }
}

}  // namespace

void ImageEvalSet::score(const Batch& batch,
                         const at::Tensor& said,
                         const nn::Pass& pass,
                         Scores& scores,
                         Dump* dump) const {
  const at::Tensor logits = of_the_data(said, *set_);
  const at::Tensor first = is_among(logits, batch.target, 1),
                   fifth = is_among(logits, batch.target, 5);
  const at::Tensor nll =
      torch::cross_entropy_loss(logits.to(at::kDouble), batch.target, {}, at::Reduction::None);
  const int64_t B = batch.target.size(0);
  const double num_right = first.sum().item<double>();
  scores.add("accuracy", kPercent * num_right, B);
  scores.add("top5_accuracy", kPercent * fifth.sum().item<double>(), B);
  scores.add("loss", nll.sum().item<double>(), B);

  const auto* places = batch.place.const_data_ptr<int64_t>();
  const Reading& reading = readings_[static_cast<size_t>(places[0] / num_pictures_)];
  Scores::Labels damage;
  if (reading.corruption != nullptr) {
    damage = {{"corruption_name", std::string(reading.corruption->name)},
              {"corruption_severity", static_cast<int64_t>(reading.severity)}};
    scores.add(kCorrupted, kPercent * num_right, B, damage);
  }
  for (int64_t i = 0; i < B; ++i) {
    const double right = kPercent * first.const_data_ptr<double>()[i];
    if (options_.blocks > 0) {
      const int64_t block = block_of(places[i] % num_pictures_);
      scores.add("block_accuracy", right, 1, block_labels(block));
      if (reading.corruption != nullptr) {
        damage["block"] = block;
        scores.add(kBlockCorrupted, right, 1, damage);
      }
    }
    if (options_.per_class) {
      const int64_t label = batch.target.const_data_ptr<int64_t>()[i];
      scores.add(
          "class_accuracy", right, 1,
          {{"class", label}, {"class_name", set_->class_names()[static_cast<size_t>(label)]}});
    }
  }
  if (dump != nullptr) {
    (*dump)["logits"].push_back(logits);
    (*dump)["labels"].push_back(batch.target);
    at::Tensor numbers = at::empty({B}, at::kLong);
    for (int64_t i = 0; i < B; ++i) {
      numbers.mutable_data_ptr<int64_t>()[i] = picture_number(places[i] % num_pictures_);
    }
    (*dump)["pictures"].push_back(numbers);
    (*dump)["passes"].push_back(at::full({B}, places[0] / num_pictures_, at::kLong));
  }
  if (pass.metric_statistics != nullptr) {
    score_metric(*pass.metric_statistics, options_.metric_profile, scores);
  }
}

std::vector<std::string> picture_metric_names() { return {"accuracy", "top5_accuracy", "loss"}; }

std::vector<Record> picture_metrics(const Scores& scores) {
  std::vector<Record> records;
  for (const std::string& name : picture_metric_names()) {
    if (const auto sum = scores.sums.find({name, {}}); sum != scores.sums.end()) {
      records.push_back(record_of(name.c_str(), sum->second));
    }
  }
  if (!records.empty()) add_corruption_errors(scores, records.front().count, records);
  for (const auto& [key, sum] : scores.sums) {
    const auto& [name, labels] = key;
    const bool is_there =
        labels.empty() && std::any_of(records.begin(), records.end(),
                                      [&](const Record& record) { return record.metric == name; });
    if (!is_there && name != kBlockCorrupted) {
      records.push_back(record_of(name.c_str(), sum, labels));
    }
  }
  add_block_errors(scores, records);
  return records;
}

}  // namespace elliptical::tasks
