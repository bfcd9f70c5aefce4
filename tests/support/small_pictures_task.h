// SPDX-License-Identifier: MIT
//
// A classifier of the built-in pictures, small enough for exact tests.
#pragma once

#include "elliptical/models/vit.h"
#include "elliptical/tasks/classify_image.h"

namespace elliptical::support {

inline models::VitOptions& small_vit(tasks::ClassifyImageOptions& options) {
  return options.model.get<models::VitOptions>();
}

inline tasks::ClassifyImageOptions small_vit_options() {
  tasks::ClassifyImageOptions options;
  options.batch_size = 4;
  models::VitOptions& vit = small_vit(options);
  vit.image_size = 16;
  vit.patch_size = 4;
  vit.dim = 16;
  vit.num_layers = 2;
  vit.num_heads = 2;
  vit.drop_path = 0.0;
  return options;
}

}  // namespace elliptical::support
