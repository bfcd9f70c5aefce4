// SPDX-License-Identifier: MIT
//
// Telling pictures apart: one class for each picture. Training follows the recipe of DeiT: pictures
// are augmented and mixed, targets are shares of classes, and the loss is
//
//   -sum_k target_k log softmax(logits)_k       averaged over the pictures
//
// A model with a second head learns there what a teacher says (tasks/teacher.h): its loss is
//
//   (1 - share) * that of the first head + share * that of the second
//
// of which the terms are `first_head` and `second_head` in the log. What is measured
// is the share of pictures whose class comes first, on clean and on corrupted pictures
// (tasks/image_evaluation.h).
#pragma once

#include <exception>
#include <memory>
#include <string>

#include "elliptical/models/image_model.h"
#include "elliptical/tasks/classifier.h"
#include "elliptical/tasks/image_data.h"
#include "elliptical/tasks/image_evaluation.h"
#include "elliptical/tasks/task.h"
#include "elliptical/tasks/teacher.h"

namespace elliptical::tasks {

struct ClassifyImageOptions : Options {
  ImageDataOptions data;
  data::MixOptions mix;
  int64_t batch_size = 128;
  std::string init;
  TeacherOptions teacher;
  ChosenOptions model{models::image_model_choices(), "vit"};

  void visit(FieldList& fields) override;
  std::unique_ptr<Options> clone() const override;
  const models::ImageModelOptions& model_options() const {
    return model.get<models::ImageModelOptions>();
  }
  /// Numbers that a training step keeps for the backward, about.
  double kept_activations() const;
  /// A small model on a few of the built-in pictures: seconds.
  void shrink();
};

class ClassifyImageTask : public Task, public Classifier {
 public:
  /// Weights to start from are read for a new run only, a teacher's for training.
  ClassifyImageTask(const ClassifyImageOptions& options, const TaskSetup& setup);
  ClassifyImageTask(const ClassifyImageOptions& options, uint64_t seed)
      : ClassifyImageTask(options, TaskSetup{.seed = seed}) {}
  /// Trains on other pictures than the options name.
  ClassifyImageTask(const ClassifyImageOptions& options,
                    std::shared_ptr<const data::ImageSet> train,
                    uint64_t seed);

  torch::nn::Module& model() override { return *model_; }
  const char* unit() const override { return "images"; }
  int64_t num_train_units() const override { return train().epoch_units(); }
  std::map<std::string, std::string> data_fingerprint() const override;
  std::map<std::string, LabelValue> labels() const override;
  std::vector<std::string> notices() const override { return notices_; }

  Batch train_batch(int64_t step) const override;
  Loss loss(const Batch& batch, nn::Pass& pass) override;

  std::unique_ptr<EvalSet> eval_set(Options& options) override;
  std::unique_ptr<Options> make_eval_options() const override;
  std::vector<Record> metrics(const Scores& scores) const override;
  std::vector<std::string> metric_names() const override;
  std::optional<Snapshot> snapshot(Options& options) override;

  Classifier* classifier() override { return this; }
  std::unique_ptr<PictureSet> picture_set(Options& options) override;
  int64_t num_classes() const override { return model_->num_classes(); }
  at::Tensor normalize(const at::Tensor& pixels) const override;

 protected:
  at::Tensor run(const Batch& batch, nn::Pass& pass) override;

 private:
  std::unique_ptr<ImageEvalSet> make_set(const ImageEvalOptions& options) const;
  void build(int64_t num_classes, const TaskSetup& setup);
  /// Throws what opening the training pictures threw, if it did.
  const TrainPictures& train() const;

  ClassifyImageOptions options_;
  Shard shard_;
  std::shared_ptr<models::ImageModel> model_;
  std::vector<std::string> notices_;
  std::unique_ptr<Teacher> teacher_;
  at::Tensor mean_, std_;  ///< (3, 1, 1)
  std::unique_ptr<TrainPictures> train_;
  std::exception_ptr no_train_;
};

/// For the table: what training costs, and the task on made-up pictures of as many classes.
Cost classify_image_cost(const Options& options);
std::unique_ptr<Task> rehearse_classify_image(const Options& options);

/// Classes and training pictures of data sets that are known by name; nothing for folders.
struct PictureCounts {
  int64_t num_classes = 0, num_train = 0;
};
std::optional<PictureCounts> known_counts(const std::string& data);

}  // namespace elliptical::tasks
