// SPDX-License-Identifier: MIT
//
// Models of pictures small enough for exact tests, chosen as a recipe chooses them.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "elliptical/models/image_model.h"

namespace elliptical::support {

/// Options of the model `name` of the table after `assignments`, as of a recipe.
ChosenOptions image_model_options(const std::string& name,
                                  const std::vector<std::string>& assignments);

/// With the values of seed 1.
std::shared_ptr<models::ImageModel> make_image_model(const std::string& name,
                                                     const std::vector<std::string>& assignments,
                                                     int64_t num_classes = 5);

/// Assignments of a vision transformer that is quick to differentiate: 4 patches, 3 layers.
std::vector<std::string> small_vit(const std::vector<std::string>& more = {});

/// (B, 3, size, size) float, numbers of order 1 without structure, the same at every call.
at::Tensor some_pixels(int64_t B, int64_t size, double frequency = 0.7);

/// Logits in evaluation, without gradient.
at::Tensor evaluate(models::ImageModel& model, const at::Tensor& pixels);

/// Larger numbers than those that training starts from, so that every part has a say in the
/// logits: N(0, 0.2^2) on top of what is there.
void stir_parameters(models::ImageModel& model);

}  // namespace elliptical::support
