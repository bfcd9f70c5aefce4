// SPDX-License-Identifier: MIT
//
// What training a classifier of pictures costs, by arithmetic, and a stand-in for its pictures to
// measure the speed of a step where they are not.
#include <torch/torch.h>

#include <algorithm>
#include <array>

#include "elliptical/data/image/small_pictures.h"
#include "elliptical/tasks/classify_image.h"
#include "elliptical/tasks/task_memory.h"

namespace elliptical::tasks {
namespace {

struct KnownData {
  const char* name;
  PictureCounts counts;
};
constexpr std::array kKnown = {
    KnownData{"cifar-10", {10, 45'000}}, KnownData{"cifar-100", {100, 45'000}},
    KnownData{"imagenet", {1000, 1'281'167}}, KnownData{"small-pictures", {10, 10'000}}};

PictureCounts counts_of(const ImageDataOptions& options, int64_t image_size) {
  if (const auto known = known_counts(options.name)) return *known;
  const auto set = open_pictures(options.name, data::Split::kTrain, options.max_bad, image_size);
  return {set->num_classes(), set->size()};
}

/// Made-up pictures with as many classes as are asked for.
class RehearsalPictures : public data::ImageSet {
 public:
  RehearsalPictures(int64_t num_classes, int64_t side)
      : ImageSet("rehearsal", std::vector<std::string>(static_cast<size_t>(num_classes), "class")),
        pictures_(data::Split::kTrain, {.side = side}) {}

  int64_t size() const override { return pictures_.size(); }
  int64_t label(int64_t index) const override { return index % num_classes(); }
  std::string origin(int64_t index) const override { return pictures_.origin(index); }
  std::map<std::string, std::string> fingerprint() const override { return {}; }

 protected:
  data::Image read(int64_t index) const override { return pictures_.get(index); }

 private:
  data::SmallPictures pictures_;
};

/// Tokens that a matrix is multiplied with, by its name. Stems count like the first stage and class
/// attention like one token, which is too little by 6 % of all in FAN-T.
int64_t tokens_of(const std::string& name, const std::vector<models::TokenStage>& stages) {
  if (name.starts_with("head")) return 1;
  for (const models::TokenStage& stage : stages) {
    if (name.starts_with(stage.prefix)) return stage.num_tokens;
  }
  return stages.front().num_tokens;
}

/// Multiplications and additions of one picture, forward: 2 per weight and token of every matrix
/// but those of feed-forward layers, which say what they use of theirs, and two products of N x N
/// scores in each layer.
double forward_flops(const models::ImageModel& model) {
  const std::vector<models::TokenStage> stages = model.stages();
  double flops = 0;
  for (const auto& parameter : model.named_parameters()) {
    if (!parameter.key().ends_with("weight") || parameter.value().dim() < 2) continue;
    if (parameter.key().find(".mlp.") != std::string::npos) continue;
    flops +=
        2.0 * static_cast<double>(parameter.value().numel() * tokens_of(parameter.key(), stages));
  }
  for (const auto& [prefix, N, C, L, feed_forward] : stages) {
    flops += 4.0 * static_cast<double>(N * N * C * L);
    flops += 2.0 * static_cast<double>(N) * feed_forward.products;
  }
  return flops;
}

}  // namespace

std::optional<PictureCounts> known_counts(const std::string& data) {
  for (const KnownData& known : kKnown) {
    if (data == known.name) return known.counts;
  }
  return std::nullopt;
}

Cost classify_image_cost(const Options& options) {
  const auto& task = dynamic_cast<const ClassifyImageOptions&>(options);
  const PictureCounts counts = counts_of(task.data, task.model_options().image_size);
  require_task_memory(TaskUse::kMeasuring, task.model_options().num_block_weights(), 0);
  const auto model = models::make_image_model(task.model, counts.num_classes);
  const auto B = static_cast<double>(task.batch_size);
  return {.num_parameters = model->num_parameters(),
          .units_per_step = task.batch_size,
          .units_per_epoch = counts.num_train / task.batch_size * task.batch_size,
          .flops_per_step = 3 * B * forward_flops(*model),  // backward: two products for each
          .bytes = task_bytes(TaskUse::kNewRun, static_cast<double>(model->num_parameters()),
                              task.kept_activations())};
}

std::unique_ptr<Task> rehearse_classify_image(const Options& options) {
  ClassifyImageOptions task = dynamic_cast<const ClassifyImageOptions&>(options);
  const int64_t image_size = task.model_options().image_size;
  const int64_t num_classes = counts_of(task.data, image_size).num_classes;
  task.batch_size = std::min(task.batch_size, kRehearsalBatch);
  task.init.clear();
  task.teacher = {};
  return std::make_unique<ClassifyImageTask>(
      task, std::make_shared<RehearsalPictures>(num_classes, image_size), /*seed=*/0);
}

}  // namespace elliptical::tasks
