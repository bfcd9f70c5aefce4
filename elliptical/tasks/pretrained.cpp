// SPDX-License-Identifier: MIT
#include "elliptical/tasks/pretrained.h"

#include <torch/torch.h>

#include <cstring>
#include <filesystem>

#include "elliptical/base/config.h"
#include "elliptical/base/errors.h"
#include "elliptical/base/files.h"
#include "elliptical/data/catalog.h"
#include "elliptical/data/packed_weights.h"
#include "elliptical/measure/run_paths.h"
#include "elliptical/models/weights.h"
#include "elliptical/store/checkpoint.h"

namespace elliptical::tasks {
namespace {

namespace fs = std::filesystem;

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

/// Whether a run is measured by the average of its weights: then that is what it is.
bool is_measured_by_average(const measure::RunPaths& run) {
  if (!fs::exists(run.config())) return false;  // checkpoints alone
  const auto options =
      recipe_values(read_file(run.config(), measure::kMaxConfigBytes), run.config());
  const auto weights = options.find("train.eval_weights");
  return weights != options.end() && weights->second == "ema";
}

/// Of the newest checkpoint of a run that is whole.
std::map<std::string, at::Tensor> read_run(const measure::RunPaths& run, const Notice& notice) {
  const bool average = is_measured_by_average(run);
  const auto part = average ? store::CheckpointPart::kAverage : store::CheckpointPart::kModel;
  if (const auto found = store::find_checkpoint(run.checkpoints(), part, notice)) {
    std::map<std::string, at::Tensor> weights;
    for (const auto& [name, tensor] : average ? found->average : found->model) {
      if (tensor.is_floating_point()) weights.emplace(name, tensor.to(at::kFloat));
    }
    if (average && notice) {
      notice("weights: " + run.folder.string() +
             ": the average of its weights, which it is measured by (train.eval_weights)");
    }
    return weights;
  }
  const std::string folder = run.folder.string();
  const std::vector<int64_t> steps = checkpoint_steps(run.checkpoints());
  if (steps.empty()) {
    throw DataError(folder + ": must have a checkpoint to read weights from, has none");
  }
  throw DataError(folder + ": must have a whole checkpoint to read weights from, " +
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
  const measure::RunPaths run{path};
  if (fs::is_directory(run.checkpoints())) return read_run(run, notice);
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
