// SPDX-License-Identifier: MIT
//
// The smallest task with pictures: a linear classifier with a gate, which stands for a metric, on
// generated pictures. It remembers how it was asked.
#pragma once

#include <torch/nn/module.h>

#include <functional>
#include <memory>
#include <vector>

#include "elliptical/tasks/classifier.h"
#include "elliptical/tasks/task.h"

namespace elliptical::run::testing {

struct ToyPictureEvalOptions : Options {
  int64_t batch_size = 4;
  std::string split = "test";
  int64_t blocks = 0, max_pictures = 0;
  void visit(FieldList& fields) override;
  std::unique_ptr<Options> clone() const override {
    return std::make_unique<ToyPictureEvalOptions>(*this);
  }
};

class ToyPictureTask : public tasks::Task, public tasks::Classifier {
 public:
  explicit ToyPictureTask(int64_t num_pictures = 22);

  torch::nn::Module& model() override { return *model_; }
  const char* unit() const override { return "images"; }
  int64_t num_train_units() const override { return 0; }
  std::map<std::string, std::string> data_fingerprint() const override {
    return {{"generator", "1"}};
  }
  std::map<std::string, LabelValue> labels() const override {
    return {{"task", std::string("toy_pictures")}};
  }
  tasks::Batch train_batch(int64_t) const override { return {}; }
  tasks::Loss loss(const tasks::Batch&, nn::Pass&) override { return {}; }
  std::unique_ptr<tasks::EvalSet> eval_set(Options& options) override;
  std::unique_ptr<Options> make_eval_options() const override {
    return std::make_unique<ToyPictureEvalOptions>();
  }
  std::vector<Record> metrics(const tasks::Scores&) const override { return {}; }
  tasks::Classifier* classifier() override { return this; }
  std::unique_ptr<tasks::PictureSet> picture_set(Options& options) override;

  int64_t num_classes() const override { return 6; }
  at::Tensor normalize(const at::Tensor& raw) const override { return (raw - 0.4) / 0.25; }

  /// Called with the input of each pass, before it.
  std::function<void(const at::Tensor& normalized, const nn::Pass&)> hook;
  int64_t num_passes = 0;
  at::Tensor pixels, targets;

 protected:
  at::Tensor run(const tasks::Batch& batch, nn::Pass& pass) override;

 private:
  std::shared_ptr<torch::nn::Module> model_ = std::make_shared<torch::nn::Module>("toy");
  at::Tensor weight_;
};

}  // namespace elliptical::run::testing
