// SPDX-License-Identifier: MIT
#include "elliptical/tasks/pretrained.h"

#include <torch/torch.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "elliptical/base/errors.h"
#include "elliptical/base/safetensors.h"
#include "elliptical/data/catalog.h"
#include "elliptical/data/packed_weights.h"
#include "elliptical/models/weights.h"

namespace elliptical::tasks {
namespace {

namespace fs = std::filesystem;

std::map<std::string, at::Tensor> read_safetensors(const fs::path& path) {
  const SafetensorsFile file(path);
  std::map<std::string, at::Tensor> weights;
  for (const TensorEntry& entry : file.header().tensors) {
    at::ScalarType type = at::kFloat;
    switch (entry.type) {
      case ElementType::kF16:
        type = at::kHalf;
        break;
      case ElementType::kBF16:
        type = at::kBFloat16;
        break;
      case ElementType::kF32:
        break;
      case ElementType::kF64:
        type = at::kDouble;
        break;
      default:
        continue;  // counts of batches and the like
    }
    const at::Tensor tensor = at::empty(entry.shape, type);
    file.read(entry, {static_cast<std::byte*>(tensor.data_ptr()), tensor.nbytes()});
    weights.emplace(entry.name, tensor.to(at::kFloat));
  }
  return weights;
}

std::map<std::string, at::Tensor> read_packed(const fs::path& folder) {
  const data::PackedWeights packed = data::read_packed_weights(folder);
  std::map<std::string, at::Tensor> weights;
  for (const data::PackedTensor& entry : packed.tensors) {
    const at::Tensor tensor = at::empty(entry.shape, at::kHalf);
    std::memcpy(tensor.data_ptr(), packed.bytes.data() + 2 * entry.offset, tensor.nbytes());
    weights.emplace(entry.name, tensor.to(at::kFloat));
  }
  return weights;
}

/// The weights of the newest checkpoint of a run.
fs::path newest_weights(const fs::path& run) {
  int64_t newest = -1;
  for (const fs::directory_entry& entry : fs::directory_iterator(run / "checkpoints")) {
    const std::string name = entry.path().filename().string();
    int64_t step = -1;
    if (std::sscanf(name.c_str(), "step-%ld", &step) == 1 &&
        name == "step-" + std::to_string(step)) {
      newest = std::max(newest, step);
    }
  }
  if (newest < 0) {
    throw DataError(run.string() + ": must have a checkpoint to read weights from, has none");
  }
  return run / "checkpoints" / ("step-" + std::to_string(newest)) / "model.safetensors";
}

fs::path locate(const std::string& place) {
  if (fs::is_directory(fs::path(place) / "checkpoints")) return newest_weights(place);
  if (fs::exists(place)) return place;
  if (place.find('/') == std::string::npos) {
    for (const fs::path& folder : data::folder_places(place)) {
      if (fs::is_directory(folder)) return folder;
    }
  }
  throw SetupError(
      "weights: " + place +
      " must be a safetensors file, a run, a folder of packed weights or the name of one "
      "below $ELLIPTICAL_DATA, is none (tools/convert_weights.py makes safetensors of "
      ".pth files)");
}

}  // namespace

std::map<std::string, at::Tensor> read_weights(const std::string& place) {
  const fs::path path = locate(place);
  if (!fs::is_directory(path)) return read_safetensors(path);
  if (!data::is_packed_weights(path)) {
    throw DataError(path.string() +
                    ": a folder of weights must hold index.tsv, holds none (give the safetensors "
                    "file itself)");
  }
  return read_packed(path);
}

std::vector<std::string> load_pretrained(models::ImageModel& model, const std::string& place) {
  return models::load_weights(model, read_weights(place), place);
}

}  // namespace elliptical::tasks
