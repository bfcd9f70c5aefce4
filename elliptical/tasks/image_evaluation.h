// SPDX-License-Identifier: MIT
//
// How a classifier is measured: once over the pictures of a split, or once for each of some
// corruptions at each of some severities, which are made on the spot, or read where the data are
// files of damaged pictures (data/image/corrupted_files.h). The data set may be another
// than the one that was trained on: one of the same classes, or one like ImageNet-A whose classes
// are some of the model's; then the others are not among the answers.
//
// Fewer pictures than there are, and equal parts of them, have all classes alike
// (data/image/balanced.h). All pictures are read in the order of the data set.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "elliptical/data/corrupt/corruption.h"
#include "elliptical/data/image/corrupted_files.h"
#include "elliptical/tasks/classifier.h"
#include "elliptical/tasks/image_data.h"

namespace elliptical::tasks {

struct ImageEvalOptions : Options {
  data::Split split = data::Split::kValid;
  std::string data;  ///< empty: what was trained on
  int64_t max_pictures = 0;
  int64_t batch_size = 64;
  std::string corrupt = "none";
  int64_t severity = 0;
  int64_t corruption_seed = 1;
  bool corruption_jpeg = false;
  int64_t blocks = 0;
  bool per_class = false;
  bool metric_profile = false;

  void visit(FieldList& fields) override;
  std::unique_ptr<Options> clone() const override;
};

/// The corruptions that a list names: "fog,snow", "main" (15), "extra" (4), "all" (19); none of
/// them: "none". Throws ConfigError with the nearest name.
std::vector<const data::CorruptionEntry*> corruptions_of(const std::string& list);

class ImageEvalSet : public PictureSet {
 public:
  /// `trained` says which data were trained on, for a model that reads `image_size` and has
  /// `num_classes`. Throws ConfigError when the options do not go together, DataError when the data
  /// do not fit, SetupError when they are not there.
  ImageEvalSet(const ImageEvalOptions& options,
               const ImageDataOptions& trained,
               int64_t image_size,
               int64_t num_classes);

  int64_t size() const override;
  /// input (B, 3, S, S), target (B) labels, place (B) reading * num_pictures() + place.
  Batch get(int64_t index) const override { return loader_->get(index); }
  /// `said` are logits (B, K).
  void score(const Batch& batch,
             const at::Tensor& said,
             const nn::Pass& pass,
             Scores& scores,
             Dump* dump) const override;
  std::map<std::string, LabelValue> labels() const override { return labels_; }
  /// Records of models whose result for a picture depends on its batch say how large that is.
  void tell_batch_size() { labels_["batch_size"] = options_.batch_size; }
  std::vector<std::string> class_names() const override { return set_->class_names(); }
  std::map<std::string, std::string> fingerprint() const override;
  std::vector<int64_t> class_columns() const override { return set_->class_columns(); }
  std::string description() const override;
  int64_t num_pictures() const override { return num_pictures_; }
  int64_t picture_number(int64_t place) const override {
    return numbers_.empty() ? place : numbers_[static_cast<size_t>(place)];
  }
  int64_t num_blocks() const override { return options_.blocks; }
  int64_t block_of(int64_t place) const override { return blocks_[static_cast<size_t>(place)]; }

  /// Whether the pictures were damaged before they became files.
  bool is_of_damaged_files() const { return files_ != nullptr; }

  /// One reading of all pictures, with one kind of damage or with none.
  struct Reading {
    const data::CorruptionEntry* corruption = nullptr;
    int severity = 0;
  };
  const std::vector<Reading>& readings() const { return readings_; }
  const data::ImageSet& set() const { return *set_; }
  const ImageEvalOptions& options() const { return options_; }

 private:
  Batch make_batch(int64_t index) const;
  data::Image view(int64_t number, const Reading& reading) const;
  int64_t batches_per_reading() const;
  void choose_pictures();
  std::pair<int, int> severities() const;  ///< the first and the last that are measured
  void make_readings();
  std::string missing_files() const;
  void check_classes(int64_t num_classes) const;

  ImageEvalOptions options_;
  double crop_ratio_;
  int64_t image_size_;
  std::unique_ptr<data::CorruptedFiles> files_;  ///< null: the pictures are not damaged
  std::shared_ptr<const data::ImageSet> set_;    ///< of several with the same pictures the first
  int64_t num_pictures_ = 0;
  std::vector<int64_t> numbers_;  ///< of the pictures that are read; empty: all of them
  std::vector<int64_t> blocks_;   ///< of each place; empty: none are asked for
  std::vector<Reading> readings_;
  std::optional<data::FrostPictures> frost_;
  std::map<std::string, LabelValue> labels_;
  std::unique_ptr<data::BatchLoader<Batch>> loader_;  ///< last: its workers use everything above
};

/// accuracy, top5_accuracy, loss: those that every evaluation has.
std::vector<std::string> picture_metric_names();
/// The same; per corruption and severity; mce where all of them were measured.
std::vector<Record> picture_metrics(const Scores& scores);

}  // namespace elliptical::tasks
