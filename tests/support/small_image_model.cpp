// SPDX-License-Identifier: MIT
#include "tests/support/small_image_model.h"

#include <torch/torch.h>

#include "elliptical/base/config.h"
#include "elliptical/nn/initialize.h"

namespace elliptical::support {

ChosenOptions image_model_options(const std::string& name,
                                  const std::vector<std::string>& assignments) {
  ChosenOptions chosen(models::image_model_choices(), name);
  apply_overrides(assignments, fields_of(chosen));
  return chosen;
}

std::shared_ptr<models::ImageModel> make_image_model(const std::string& name,
                                                     const std::vector<std::string>& assignments,
                                                     int64_t num_classes) {
  auto model = models::make_image_model(image_model_options(name, assignments), num_classes);
  model->initialize(1);
  return model;
}

std::vector<std::string> small_vit(const std::vector<std::string>& more) {
  std::vector<std::string> all{"image_size=8", "patch_size=4",          "dim=8",
                               "num_layers=3", "num_heads=2",           "feedforward_ratio=2",
                               "drop_path=0",  "attention.name=softmax"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

at::Tensor some_pixels(int64_t B, int64_t size, double frequency) {
  return (torch::arange(1, B * 3 * size * size + 1, torch::kDouble) * frequency)
      .sin()
      .view({B, 3, size, size})
      .to(torch::kFloat);
}

at::Tensor evaluate(models::ImageModel& model, const at::Tensor& pixels) {
  const torch::NoGradGuard no_grad;
  nn::Pass pass;
  return model.forward(pixels, pass);
}

void stir_parameters(models::ImageModel& model) {
  const torch::NoGradGuard no_grad;
  for (auto& item : model.named_parameters()) {
    at::Tensor noise = torch::empty_like(item.value(), torch::kFloat);
    nn::fill_normal(noise, 0.0, 0.2, RandomKey(7).derive(item.key()));
    item.value().add_(noise);
  }
}

}  // namespace elliptical::support
