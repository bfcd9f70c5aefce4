// SPDX-License-Identifier: MIT
//
// Pretrained weights of models of pictures, from where they lie: a safetensors file, a run folder
// (its newest checkpoint that matches its checksums, the average of its weights where it is measured
// by that), or a folder of half floats with a table
// (data/packed_weights.h). A name without a slash that is no file is looked for where data sets
// are: "deit-tiny".
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <vector>

#include "elliptical/base/checkpoint_folder.h"
#include "elliptical/models/image_model.h"

namespace elliptical::tasks {

/// All floating tensors of a file or folder by name, as float32. `notice` hears which checkpoints
/// of a run are damaged, and when it is an average that is read. Throws DataError, or SetupError when there is no such place.
std::map<std::string, at::Tensor> read_weights(const std::string& place, const Notice& notice);

/// Reads them into the model and returns what is to be said about it: damaged checkpoints, and how
/// weights were made to fit (models/weights.h).
std::vector<std::string> load_pretrained(models::ImageModel& model, const std::string& place);

}  // namespace elliptical::tasks
