// SPDX-License-Identifier: MIT
#include "elliptical/tasks/classify_image.h"

#include <torch/torch.h>

#include <algorithm>
#include <stdexcept>

#include "elliptical/base/errors.h"
#include "elliptical/base/names.h"
#include "elliptical/base/option_limits.h"
#include "elliptical/data/image/small_pictures.h"
#include "elliptical/measure/labels.h"
#include "elliptical/nn/attention/attention.h"
#include "elliptical/tasks/classify_image_measures.h"
#include "elliptical/tasks/picture_snapshot.h"
#include "elliptical/tasks/pretrained.h"
#include "elliptical/tasks/task_memory.h"

namespace elliptical::tasks {
namespace {

/// Cross-entropy with targets (B, K) that are shares of classes.
at::Tensor soft_cross_entropy(const at::Tensor& logits, const at::Tensor& target) {
  return -(target * logits.log_softmax(1)).sum(1).mean();
}

}  // namespace

void ClassifyImageOptions::visit(FieldList& fields) {
  fields.add_group("data", data);
  fields.add_group("mix", mix);
  fields.add("batch_size", batch_size, "pictures of a training step", between(1, kMostBatch));
  fields.add(
      "init", init,
      "weights to start from: deit-tiny, a safetensors file or a run folder; empty: from the seed");
  fields.add_group("teacher", teacher);
  fields.add_group("model", model);
}

std::unique_ptr<Options> ClassifyImageOptions::clone() const {
  return std::make_unique<ClassifyImageOptions>(*this);
}

void ClassifyImageOptions::shrink() {
  data.name = std::string(data::kSmallPictures);
  batch_size = std::min<int64_t>(batch_size, 8);
  init.clear();
  teacher = {};
  model.get<models::ImageModelOptions>().shrink();
}

ClassifyImageTask::ClassifyImageTask(const ClassifyImageOptions& options, const TaskSetup& setup)
    : options_(options), shard_(setup.shard) {
  rows_of(shard_, options_.batch_size);  // throws
  const int64_t image_size = options_.model_options().image_size;
  options_.data.augment.check(image_size);
  const std::optional<PictureCounts> known = known_counts(options_.data.name);
  if (setup.use == TaskUse::kMeasuring &&
      known) {  // reading them would take longer than most measuring
    no_train_ = std::make_exception_ptr(
        std::logic_error("classify_image: a task for measuring has no training pictures"));
    build(known->num_classes, setup);
    return;
  }
  std::shared_ptr<const data::ImageSet> set;
  try {
    set = open_pictures(options_.data.name, data::Split::kTrain, options_.data.max_bad, image_size);
  } catch (const SetupError&) {
    // A model with weights of its own can be measured where its training pictures are not.
    if (!known) throw;
    no_train_ = std::current_exception();
    build(known->num_classes, setup);
    return;
  }
  train_ = std::make_unique<TrainPictures>(set, options_.data, options_.mix, options_.batch_size,
                                           image_size, setup.seed);
  // Of what is trained on from here, not of what the pictures have become at the first checkpoint.
  if (setup.use != TaskUse::kMeasuring) set->fingerprint();
  build(set->num_classes(), setup);
}

ClassifyImageTask::ClassifyImageTask(const ClassifyImageOptions& options,
                                     std::shared_ptr<const data::ImageSet> train,
                                     uint64_t seed)
    : options_(options),
      train_(std::make_unique<TrainPictures>(train,
                                             options.data,
                                             options.mix,
                                             options.batch_size,
                                             options.model_options().image_size,
                                             seed)) {
  build(train->num_classes(), {.seed = seed});
}

double ClassifyImageOptions::kept_activations() const {
  return static_cast<double>(batch_size) * model_options().kept_activations();
}

void ClassifyImageTask::build(int64_t num_classes, const TaskSetup& setup) {
  const data::PixelStatistics statistics = options_.data.statistics();
  mean_ = channel_tensor(statistics.mean);
  std_ = channel_tensor(statistics.std);
  require_task_memory(setup.use, options_.model_options().num_block_weights(),
                      options_.kept_activations());
  model_ = models::make_image_model(options_.model, num_classes);
  model_->initialize(setup.seed);
  if (!options_.init.empty() && setup.use == TaskUse::kNewRun) {
    notices_ = load_pretrained(*model_, options_.init);
  }
  if (options_.teacher.kind != TeacherKind::kNone && setup.use != TaskUse::kMeasuring) {
    if (!options_.model_options().has_second_head()) {
      std::vector<std::string> others;
      for (const models::ImageModelEntry& entry : models::image_model_table()) {
        if (entry.can.distils) others.emplace_back(entry.name);
      }
      throw ConfigError("teacher: the model must have a second head, model.distilled = true of " +
                        join(others) + ", has none");
    }
    teacher_ =
        std::make_unique<Teacher>(options_.teacher, num_classes,
                                  [this](const std::string& line) { notices_.push_back(line); });
  }
}

const TrainPictures& ClassifyImageTask::train() const {
  if (no_train_) std::rethrow_exception(no_train_);
  return *train_;
}

std::map<std::string, std::string> ClassifyImageTask::data_fingerprint() const {
  return train_ ? train_->set().fingerprint() : std::map<std::string, std::string>{};
}

std::map<std::string, LabelValue> ClassifyImageTask::labels() const {
  std::map<std::string, LabelValue> labels = model_->labels();
  labels["num_parameters"] = model_->num_parameters();
  labels["task"] = std::string(kClassifyImageMeasures.task);
  if (!options_.init.empty()) labels["init"] = options_.init;
  return labels;
}

Batch ClassifyImageTask::train_batch(int64_t step) const {
  Batch batch = train().batch(step);
  if (shard_.count == 1) return batch;
  // Of all of it: mixing pairs pictures of different shards.
  const auto [first, count] = rows_of(shard_, options_.batch_size);
  batch.input = batch.input.narrow(0, first, count);
  batch.target = batch.target.narrow(0, first, count);
  batch.num_units = count;
  return batch;
}

at::Tensor ClassifyImageTask::run(const Batch& batch, nn::Pass& pass) {
  return model_->forward(batch.is_prepared ? batch.input : normalize(batch.input), pass);
}

Loss ClassifyImageTask::loss(const Batch& batch, nn::Pass& pass) {
  const at::Tensor own = soft_cross_entropy(forward(batch, pass), batch.target);
  const auto second = pass.outputs.find(models::kSecondHead);
  if (second == pass.outputs.end()) return with_auxiliary(own, pass);
  // Without a teacher the second head learns the same targets.
  const at::Tensor distilled = teacher_ ? teacher_->loss(second->second, batch.input)
                                        : soft_cross_entropy(second->second, batch.target);
  const double share = options_.teacher.share;
  return sum_of({{"first_head", (1 - share) * own}, {"second_head", share * distilled}}, pass);
}

std::unique_ptr<Options> ClassifyImageTask::make_eval_options() const {
  return std::make_unique<ImageEvalOptions>();
}

std::unique_ptr<EvalSet> ClassifyImageTask::eval_set(Options& options) {
  return picture_set(options);
}

namespace {

/// Whether the result for a picture depends on the others of its batch, by more than rounding.
bool depends_on_batch(const models::ImageModel& model) {
  const auto labels = model.labels();
  const auto estimator = labels.find("metric_estimator");
  if (estimator != labels.end() &&
      ops::metric_estimator(measure::label_text(estimator->second))->draws) {
    return true;
  }
  const auto modules = model.modules(/*include_self=*/false);
  return std::any_of(modules.begin(), modules.end(), [](const auto& module) {
    const auto* attention = dynamic_cast<const nn::Attention*>(module.get());
    return attention != nullptr && attention->mixes_sequences();
  });
}

}  // namespace

std::unique_ptr<PictureSet> ClassifyImageTask::picture_set(Options& options) {
  return make_set(dynamic_cast<const ImageEvalOptions&>(options));
}

std::unique_ptr<ImageEvalSet> ClassifyImageTask::make_set(const ImageEvalOptions& chosen) const {
  const models::ImageModelOptions& model = options_.model_options();
  auto set = std::make_unique<ImageEvalSet>(chosen, options_.data, model.image_size, num_classes());
  if (depends_on_batch(*model_)) set->tell_batch_size();
  const auto B = static_cast<double>(std::min(chosen.batch_size, set->num_pictures()));
  const auto side = static_cast<double>(model.image_size);
  require_pass_memory(B * (data::Image::kChannels * side * side + model.widest_layer()));
  return set;
}

std::vector<std::string> ClassifyImageTask::metric_names() const { return picture_metric_names(); }

std::vector<Record> ClassifyImageTask::metrics(const Scores& scores) const {
  return picture_metrics(scores);
}

std::optional<Snapshot> ClassifyImageTask::snapshot(Options& options) {
  const auto& chosen = dynamic_cast<const ImageEvalOptions&>(options);
  ImageEvalOptions undamaged;
  undamaged.split = chosen.split;
  undamaged.data = chosen.data;
  undamaged.batch_size = 1;
  const std::unique_ptr<ImageEvalSet> set = make_set(undamaged);
  if (set->is_of_damaged_files()) return std::nullopt;
  return picture_snapshot(*this, *model_, *set);
}

at::Tensor ClassifyImageTask::normalize(const at::Tensor& pixels) const {
  return (pixels - mean_) / std_;
}

}  // namespace elliptical::tasks
