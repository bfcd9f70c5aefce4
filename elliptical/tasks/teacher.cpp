// SPDX-License-Identifier: MIT
#include "elliptical/tasks/teacher.h"

#include <torch/torch.h>

#include <filesystem>

#include "elliptical/base/config.h"
#include "elliptical/base/errors.h"
#include "elliptical/base/files.h"
#include "elliptical/measure/run_paths.h"
#include "elliptical/models/weights.h"
#include "elliptical/tasks/classify_image_measures.h"
#include "elliptical/tasks/image_data.h"
#include "elliptical/tasks/pretrained.h"

namespace elliptical::tasks {
namespace {

namespace fs = std::filesystem;

/// The part of a run's configuration that says what its model is and how pixels are normalized.
struct RunModel {
  ImageDataOptions data;
  ChosenOptions model{models::image_model_choices(), "vit"};
  void visit(FieldList& fields) {
    fields.add("task.data.mean", data.mean, "");
    fields.add("task.data.std", data.std, "");
    fields.add_group("task.model", model);
  }
};

RunModel model_of_run(const fs::path& folder) {
  const fs::path config = measure::RunPaths{folder}.config();
  const auto values = recipe_values(read_file(config, measure::kMaxConfigBytes), config);
  const auto task = values.find("task.name");
  const std::string wanted = kClassifyImageMeasures.task;
  if (task == values.end() || task->second != wanted) {
    throw ConfigError("teacher: " + folder.string() + " must be a run of " + wanted +
                      ", is one of " + (task == values.end() ? "nothing" : task->second));
  }
  std::vector<std::string> assignments;
  for (const auto& [key, value] : values) {
    const bool is_model = key.starts_with("task.model.");
    if (is_model || key == "task.data.mean" || key == "task.data.std") {
      assignments.push_back(key + "=" + value);
    }
  }
  RunModel result;
  apply_overrides(assignments, fields_of(result));
  return result;
}

}  // namespace

std::string_view to_string(TeacherKind kind) {
  return kind == TeacherKind::kNone ? "none" : kind == TeacherKind::kHard ? "hard" : "soft";
}

void TeacherOptions::visit(FieldList& fields) {
  fields.add_choice("kind",
                    {.names = {"none", "hard", "soft"},
                     .get = [this] { return std::string(to_string(kind)); },
                     .set =
                         [this](const std::string& name) {
                           kind = name == "none"   ? TeacherKind::kNone
                                  : name == "hard" ? TeacherKind::kHard
                                                   : TeacherKind::kSoft;
                         },
                     .selects_fields = true},
                    "what a second head learns: labels, a teacher's classes or its probabilities");
  fields.add("share", share, "of the second head in the loss", between(0, 1));
  if (kind == TeacherKind::kNone) return;
  fields.add("weights", weights, "run folder, or weights of `teacher.model`: a file or a name");
  if (kind == TeacherKind::kSoft) {
    fields.add("temperature", temperature, "that both sides' logits are divided by", above(0));
  }
  fields.add_group("model", model);
}

Teacher::Teacher(const TeacherOptions& options, int64_t num_classes, const Notice& notice)
    : options_(options) {
  ChosenOptions chosen = options.model;
  ImageDataOptions data;
  if (options.weights.empty()) {
    throw ConfigError(
        "teacher: weights must be a run folder or weights of a model, got nothing "
        "(task.teacher.weights, or task.teacher.kind=none)");
  }
  if (fs::exists(measure::RunPaths{options.weights}.config())) {
    RunModel run = model_of_run(options.weights);
    chosen = run.model;
    data = run.data;
  }
  const std::string& source = options.weights;
  const auto weights = read_weights(source, notice);  // first of all: are they there?
  const data::PixelStatistics statistics = data.statistics();
  mean_ = channel_tensor(statistics.mean);
  std_ = channel_tensor(statistics.std);
  model_ = models::make_image_model(chosen, num_classes);
  model_->initialize(0);
  for (const auto& [name, tensor] : weights) {
    const bool is_head = name == "head.weight" && tensor.size(0) != num_classes;
    if (!is_head) continue;
    throw ConfigError("teacher: must tell the " + std::to_string(num_classes) +
                      " classes of the data apart, " + source + " tells " +
                      std::to_string(tensor.size(0)));
  }
  models::load_weights(*model_, weights, source);
  model_->eval();
  for (at::Tensor& parameter : model_->parameters()) parameter.set_requires_grad(false);
}

at::Tensor Teacher::say(const at::Tensor& pixels) const {
  const at::NoGradGuard no_grad;
  auto pass = nn::Pass::of_evaluation();
  at::Tensor seen = pixels;
  if (const int64_t size = model_->options().image_size; size != pixels.size(2)) {
    seen = at::upsample_bicubic2d(pixels, {size, size}, /*align_corners=*/false).clamp(0, 1);
  }
  return model_->forward((seen - mean_) / std_, pass);
}

at::Tensor Teacher::loss(const at::Tensor& logits, const at::Tensor& pixels) const {
  const at::Tensor said = say(pixels);
  if (options_.kind == TeacherKind::kHard) {
    return torch::cross_entropy_loss(logits, said.argmax(1));
  }
  const double tau = options_.temperature;
  const at::Tensor sum =
      at::kl_div((logits / tau).log_softmax(1), (said / tau).log_softmax(1), at::Reduction::Sum,
                 /*log_target=*/true);
  return sum * (tau * tau / static_cast<double>(logits.numel()));
}

}  // namespace elliptical::tasks
