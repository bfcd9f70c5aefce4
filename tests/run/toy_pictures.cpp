// SPDX-License-Identifier: MIT
#include "tests/run/toy_pictures.h"

#include <torch/torch.h>

namespace elliptical::run::testing {
namespace {

constexpr int64_t kClasses = 6, kSize = 3 * 4 * 4;

at::Tensor numbers(uint64_t seed, at::IntArrayRef shape) {
  return at::randn(shape, at::make_generator<at::CPUGeneratorImpl>(seed));
}

class ToyPictureSet : public tasks::PictureSet {
 public:
  ToyPictureSet(const ToyPictureTask& task, const ToyPictureEvalOptions& options)
      : task_(task), options_(options) {}
  int64_t size() const override {
    return (num_pictures() + options_.batch_size - 1) / options_.batch_size;
  }
  tasks::Batch get(int64_t index) const override {
    const int64_t first = index * options_.batch_size;
    const int64_t count = std::min(options_.batch_size, num_pictures() - first);
    return {.input = task_.pixels.narrow(0, first, count),
            .target = task_.targets.narrow(0, first, count),
            .num_units = count};
  }
  void score(const tasks::Batch&,
             const at::Tensor&,
             const nn::Pass&,
             tasks::Scores&,
             tasks::Dump*) const override {}
  std::map<std::string, LabelValue> labels() const override { return {{"split", options_.split}}; }
  int64_t num_pictures() const override {
    const int64_t all = task_.pixels.size(0);
    return options_.max_pictures > 0 ? std::min(all, options_.max_pictures) : all;
  }
  int64_t num_blocks() const override { return options_.blocks; }
  int64_t block_of(int64_t place) const override {
    return place * options_.blocks / num_pictures();
  }
  std::vector<std::string> class_names() const override {
    std::vector<std::string> names;
    for (int64_t k = 0; k < kClasses; ++k) names.push_back("toy " + std::to_string(k));
    return names;
  }

 private:
  const ToyPictureTask& task_;
  ToyPictureEvalOptions options_;
};

}  // namespace

void ToyPictureEvalOptions::visit(FieldList& fields) {
  fields.add("batch_size", batch_size, "pictures at a time", at_least(1));
  fields.add("split", split, "part of the data");
  fields.add("blocks", blocks, "parts that are counted apart", at_least(0));
  fields.add("max_pictures", max_pictures, "only so many; 0: all", at_least(0));
}

ToyPictureTask::ToyPictureTask(int64_t num_pictures) {
  weight_ = model_->register_parameter("weight", 0.5 * numbers(1, {kClasses, kSize}));
  pixels = at::sigmoid(numbers(2, {num_pictures, 3, 4, 4}));
  {
    const at::NoGradGuard no_grad;
    // Most labels are what the model says, some are not, so that its accuracy is below 100 %.
    auto pass = nn::Pass::of_evaluation();
    targets = forward({.input = pixels}, pass).argmax(1);
    targets.slice(0, 0, num_pictures, 5).add_(1).remainder_(kClasses);
  }
  num_passes = 0;
}

std::unique_ptr<tasks::EvalSet> ToyPictureTask::eval_set(Options& options) {
  return picture_set(options);
}

std::unique_ptr<tasks::PictureSet> ToyPictureTask::picture_set(Options& options) {
  return std::make_unique<ToyPictureSet>(*this, dynamic_cast<ToyPictureEvalOptions&>(options));
}

at::Tensor ToyPictureTask::run(const tasks::Batch& batch, nn::Pass& pass) {
  const at::Tensor normalized = batch.is_prepared ? batch.input : normalize(batch.input);
  if (hook) hook(normalized, pass);
  ++num_passes;
  const at::Tensor x = normalized.flatten(1);
  at::Tensor gate = at::cos(2 * x);  // its own slope often outweighs it
  if (!pass.gradient_through_metric.value_or(true)) gate = gate.detach();
  // Each picture by itself, so that its logits do not depend on its batch.
  return ((x * gate).unsqueeze(1) * weight_).sum(2);
}

}  // namespace elliptical::run::testing
