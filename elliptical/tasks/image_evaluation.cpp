// SPDX-License-Identifier: MIT
#include "elliptical/tasks/image_evaluation.h"

#include <torch/torch.h>

#include <algorithm>

#include "elliptical/base/errors.h"
#include "elliptical/base/names.h"
#include "elliptical/base/option_limits.h"
#include "elliptical/data/catalog.h"
#include "elliptical/data/image/balanced.h"
#include "elliptical/data/image/planes.h"

namespace elliptical::tasks {
namespace {

constexpr const char* kFrost = "frost";

}  // namespace

void ImageEvalOptions::visit(FieldList& fields) {
  fields.add_enum("split", split, {"train", "valid", "test"}, data::split_from_string,
                  "which pictures are read");
  fields.add("data", data, "another data set or folder; empty: the one that was trained on");
  fields.add("max_pictures", max_pictures, "only so many, of all classes alike; 0: all",
             at_least(0));
  fields.add("batch_size", batch_size, "pictures computed at once", between(1, kMostBatch));
  fields.add("corrupt", corrupt,
             "names of `elliptical list corruptions` with commas, main, extra, all, or none");
  fields.add("severity", severity, "of corruptions, 1 to 5; 0: all five", between(0, 5));
  fields.add("corruption_seed", corruption_seed, "of their random numbers", any_seed());
  fields.add("corruption_jpeg", corruption_jpeg,
             "JPEG of quality 85 after the damage, which the files of ImageNet-C went through");
  fields.add("blocks", blocks,
             "equal parts, of all classes alike, that are also recorded apart; 0: none",
             between(0, 10000));
  fields.add("per_class", per_class, "also record the accuracy of each class");
  fields.add("metric_profile", metric_profile,
             "also record the mean of each coordinate of the metric, per layer and head");
}

std::unique_ptr<Options> ImageEvalOptions::clone() const {
  return std::make_unique<ImageEvalOptions>(*this);
}

std::vector<const data::CorruptionEntry*> corruptions_of(const std::string& list) {
  std::vector<const data::CorruptionEntry*> result;
  if (list == "none") return result;
  const auto& table = data::corruption_table();
  std::vector<std::string> names = {"none", "main", "extra", "all"};
  for (const data::CorruptionEntry& entry : table) names.emplace_back(entry.name);
  for (const std::string& part : split(list)) {
    const size_t before = result.size();
    for (const data::CorruptionEntry& entry : table) {
      const bool is_main = entry.group == data::CorruptionGroup::kMain;
      const bool is_meant =
          part == entry.name || part == "all" || part == (is_main ? "main" : "extra");
      const bool is_new = std::find(result.begin(), result.end(), &entry) == result.end();
      if (is_meant && is_new) result.push_back(&entry);
    }
    if (result.size() == before && std::find(names.begin(), names.end(), part) == names.end()) {
      throw ConfigError("eval: corrupt: " + unknown_name(part, names));
    }
  }
  return result;
}

ImageEvalSet::ImageEvalSet(const ImageEvalOptions& options,
                           const ImageDataOptions& trained,
                           int64_t image_size,
                           int64_t num_classes)
    : options_(options), crop_ratio_(trained.crop_ratio), image_size_(image_size) {
  const std::string& name = options.data.empty() ? trained.name : options.data;
  files_ = data::CorruptedFiles::find(name, options.split, trained.max_bad);
  make_readings();
  set_ = files_ ? files_->open(*readings_.front().corruption, readings_.front().severity)
                : open_pictures(name, options.split, trained.max_bad, image_size);
  num_pictures_ =
      options.max_pictures > 0 ? std::min(options.max_pictures, set_->size()) : set_->size();
  check_classes(num_classes);
  if (set_->is_cropped()) crop_ratio_ = 1;
  labels_["data"] = files_ ? files_->name() : set_->name();
  labels_["split"] = to_string(options_.split);
  labels_["pictures_total"] = set_->size();
  labels_["classes"] = set_->num_classes();
  choose_pictures();
  loader_ = std::make_unique<data::BatchLoader<Batch>>(
      [this](int64_t index) { return make_batch(index); }, data::BatchLoaderOptions{.end = size()});
}

void ImageEvalSet::check_classes(int64_t num_classes) const {
  const std::vector<int64_t>& columns = set_->class_columns();
  const bool fits = columns.empty()
                        ? set_->num_classes() == num_classes
                        : *std::max_element(columns.begin(), columns.end()) < num_classes;
  if (fits) return;
  throw DataError("eval: data must have the " + std::to_string(num_classes) +
                  " classes of the model, or be known to have some of them, " + set_->name() +
                  " has " + std::to_string(set_->num_classes()) +
                  " (choose other data: --set data=...)");
}

void ImageEvalSet::choose_pictures() {
  const bool is_part = num_pictures_ < set_->size();
  if (!is_part && options_.blocks == 0) return;
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < set_->size(); ++i) labels.push_back(set_->label(i));
  if (is_part) {
    numbers_ = data::balanced_order(labels, set_->num_classes(), num_pictures_);
    std::vector<int64_t> chosen;
    for (const int64_t number : numbers_) chosen.push_back(labels[static_cast<size_t>(number)]);
    labels = std::move(chosen);
    labels_["max_pictures"] = num_pictures_;
    labels_["subset"] = std::string("balanced");
  }
  if (options_.blocks > 0) blocks_ = data::balanced_parts(labels, options_.blocks);
}

std::string ImageEvalSet::description() const {
  const std::string from =
      " (" + (files_ ? files_->name() : set_->name()) + ", " + to_string(options_.split) + "), ";
  const std::string classes =
      std::to_string(set_->num_classes()) + " classes" + (files_ ? missing_files() : "");
  const std::string total = std::to_string(set_->size());
  if (numbers_.empty()) return "pictures: all " + total + from + classes;
  std::vector<int64_t> counts(static_cast<size_t>(set_->num_classes()));
  for (const int64_t number : numbers_) ++counts[static_cast<size_t>(set_->label(number))];
  const auto [least, most] = std::minmax_element(counts.begin(), counts.end());
  std::string each = std::to_string(*least);
  if (*least != *most) each += " to " + std::to_string(*most);
  return "pictures: " + std::to_string(num_pictures_) + " of " + total + from + each +
         " of each of " + classes;
}

std::pair<int, int> ImageEvalSet::severities() const {
  if (options_.severity == 0) return {1, data::kNumSeverities};
  return {static_cast<int>(options_.severity), static_cast<int>(options_.severity)};
}

void ImageEvalSet::make_readings() {
  // Files are damaged: without a choice all that are there are meant.
  if (files_ && options_.corrupt == "none") options_.corrupt = "all";
  const auto corruptions = corruptions_of(options_.corrupt);
  if (corruptions.empty()) {
    readings_.emplace_back();
    labels_["perturbation"] = std::string("none");
    return;
  }
  if (files_ && options_.corruption_jpeg) {
    throw ConfigError(
        "eval: corruption_jpeg must be false for data that are damaged files, which " +
        files_->name() + " has (they are read as they are)");
  }
  const auto [first, last] = severities();
  for (const data::CorruptionEntry* corruption : corruptions) {
    if (!files_ && corruption->name == std::string(kFrost)) {
      frost_ = data::load_frost_pictures(data::find_data(kFrost));
    }
    for (int severity = first; severity <= last; ++severity) {
      if (!files_ || files_->has(*corruption, severity))
        readings_.push_back({corruption, severity});
    }
  }
  if (readings_.empty()) {
    throw DataError(files_->name() + ": must hold " + options_.corrupt + " at severity " +
                    (first == last ? std::to_string(first) : "1 to 5") + ", does not");
  }
  labels_["perturbation"] = std::string("corruption");
  labels_["corruption"] = options_.corrupt;
  labels_["severity"] = options_.severity;
  if (files_) return;
  labels_["corruption_seed"] = options_.corruption_seed;
  if (options_.corruption_jpeg) labels_["corruption_jpeg"] = true;
}

/// "; 74 kinds of damage, not there: fog/3 (no mCE)"
std::string ImageEvalSet::missing_files() const {
  std::vector<std::string> missing;
  bool has_main = true, has_extra = true;
  const auto [first, last] = severities();
  for (const data::CorruptionEntry* corruption : corruptions_of(options_.corrupt)) {
    std::vector<std::string> levels;
    for (int severity = first; severity <= last; ++severity) {
      if (files_->has(*corruption, severity)) continue;
      levels.push_back(std::string(corruption->name) + "/" + std::to_string(severity));
    }
    if (levels.empty()) continue;
    (corruption->group == data::CorruptionGroup::kMain ? has_main : has_extra) = false;
    const bool is_whole = last - first + 1 == static_cast<int>(levels.size());
    if (is_whole) levels = {corruption->name};
    missing.insert(missing.end(), levels.begin(), levels.end());
  }
  const std::string count = std::to_string(readings_.size());
  const std::string text = "; " + count + (count == "1" ? " kind" : " kinds") + " of damage";
  if (missing.empty()) return text;
  std::vector<std::string> without;
  if (!has_main) without.emplace_back("no mCE");
  if (!has_extra) without.emplace_back("no extra mCE");
  return text + ", not there: " + join(missing) + " (" + join(without) + ")";
}

std::map<std::string, std::string> ImageEvalSet::fingerprint() const {
  if (!files_) return set_->fingerprint();
  std::map<std::string, std::string> result;
  for (const Reading& reading : readings_) {
    const auto set = files_->open(*reading.corruption, reading.severity);
    for (const auto& [name, checksum] : set->fingerprint()) {
      result[set->name() + " " + name] = checksum;
    }
  }
  return result;
}

int64_t ImageEvalSet::batches_per_reading() const {
  return (num_pictures_ + options_.batch_size - 1) / options_.batch_size;
}

int64_t ImageEvalSet::size() const {
  return static_cast<int64_t>(readings_.size()) * batches_per_reading();
}

data::Image ImageEvalSet::view(int64_t number, const Reading& reading) const {
  const data::Image picture =
      files_ ? files_->open(*reading.corruption, reading.severity)->get(number) : set_->get(number);
  if (reading.corruption == nullptr || files_) {
    return evaluation_view(picture, image_size_, crop_ratio_, data::Filter::kBicubic);
  }
  // As ImageNet-C was made: bilinear, and the damage after the crop. The key does not know the
  // corruption, so all of them draw alike for one picture.
  const RandomKey key = RandomKey(static_cast<uint64_t>(options_.corruption_seed))
                            .derive("corruption")
                            .derive(static_cast<uint64_t>(number));
  data::Image damaged =
      data::corrupt(evaluation_view(picture, image_size_, crop_ratio_, data::Filter::kBilinear),
                    *reading.corruption, reading.severity, key, frost_ ? &*frost_ : nullptr);
  return options_.corruption_jpeg ? data::jpeg_round_trip(damaged, data::kReleasedQuality)
                                  : damaged;
}

Batch ImageEvalSet::make_batch(int64_t index) const {
  const int64_t reading = index / batches_per_reading();
  const int64_t first = index % batches_per_reading() * options_.batch_size;
  const int64_t B = std::min(options_.batch_size, num_pictures_ - first);
  Batch batch{.input = at::empty({B, data::Image::kChannels, image_size_, image_size_}),
              .target = at::empty({B}, at::kLong),
              .place = at::arange(first, first + B) + reading * num_pictures_,
              .num_units = B};
  auto* pixels = batch.input.mutable_data_ptr<float>();
  const int64_t length = data::Image::kChannels * image_size_ * image_size_;
  for (int64_t i = 0; i < B; ++i) {
    const int64_t number = picture_number(first + i);
    data::to_planes(view(number, readings_[static_cast<size_t>(reading)]), pixels + i * length);
    batch.target.mutable_data_ptr<int64_t>()[i] = set_->label(number);
  }
  return batch;
}

}  // namespace elliptical::tasks
