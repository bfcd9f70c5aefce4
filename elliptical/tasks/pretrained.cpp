// SPDX-License-Identifier: MIT
#include "elliptical/tasks/pretrained.h"

#include <torch/torch.h>

#include <cstring>
#include <filesystem>

#include "elliptical/base/errors.h"
#include "elliptical/data/catalog.h"
#include "elliptical/data/packed_weights.h"
#include "elliptical/models/weights.h"
#include "elliptical/store/checkpoint.h"

namespace elliptical::tasks {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCheckpoints = "checkpoints";

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

/// Of the newest checkpoint of a run that is whole.
std::map<std::string, at::Tensor> read_run(const fs::path& run, const Notice& notice) {
  const fs::path checkpoints = run / kCheckpoints;
  if (const auto found =
          store::find_checkpoint(checkpoints, store::CheckpointPart::kModel, notice)) {
    std::map<std::string, at::Tensor> weights;
    for (const auto& [name, tensor] : found->model) {
      if (tensor.is_floating_point()) weights.emplace(name, tensor.to(at::kFloat));
    }
    return weights;
  }
  const std::vector<int64_t> steps = checkpoint_steps(checkpoints);
  if (steps.empty()) {
    throw DataError(run.string() + ": must have a checkpoint to read weights from, has none");
  }
  throw DataError(run.string() + ": must have a whole checkpoint to read weights from, " +
                  (steps.size() == 1 ? "its only one is"
                                     : "each of its " + std::to_string(steps.size()) + " is") +
                  " damaged (train it again, or give a safetensors file)");
}

fs::path locate(const std::string& place) {
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

std::map<std::string, at::Tensor> read_weights(const std::string& place, const Notice& notice) {
  const fs::path path = locate(place);
  if (!fs::is_directory(path)) return store::read_floating_tensors(path);
  if (fs::is_directory(path / kCheckpoints)) return read_run(path, notice);
  if (!data::is_packed_weights(path)) {
    throw DataError(path.string() +
                    ": a folder of weights must hold index.tsv, holds none (give the safetensors "
                    "file itself)");
  }
  return read_packed(path);
}

std::vector<std::string> load_pretrained(models::ImageModel& model, const std::string& place) {
  std::vector<std::string> notices;
  const auto weights =
      read_weights(place, [&](const std::string& line) { notices.push_back(line); });
  const std::vector<std::string> fitted = models::load_weights(model, weights, place);
  notices.insert(notices.end(), fitted.begin(), fitted.end());
  return notices;
}

}  // namespace elliptical::tasks
