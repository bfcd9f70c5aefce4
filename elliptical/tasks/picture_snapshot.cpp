// SPDX-License-Identifier: MIT
#include "elliptical/tasks/picture_snapshot.h"

#include <torch/torch.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

namespace elliptical::tasks {
namespace {

using nlohmann::json;

/// The maps (H, N, N) of a trace with B = 1, first layer first.
std::vector<at::Tensor> maps_of(const nn::Trace& trace) {
  std::vector<at::Tensor> maps;
  for (;;) {
    const auto found = trace.tensors.find("layers." + std::to_string(maps.size()) + ".attention");
    if (found == trace.tensors.end()) return maps;
    maps.push_back(found->second[0]);
  }
}

/// Queries, keys, metrics and maps of the first picture, as snapshots of text have them.
void add_trace(const nn::Trace& trace, Snapshot& snapshot) {
  std::vector<std::pair<std::string, at::Tensor>> tensors;
  int64_t num_bytes = 0;
  for (const auto& [name, tensor] : trace.tensors) {
    if (name.ends_with(".values")) continue;
    tensors.emplace_back(name, tensor[0].contiguous());
    num_bytes += static_cast<int64_t>(tensors.back().second.nbytes());
  }
  if (num_bytes > kMaxTraceBytes) {
    snapshot.missing = "snapshot: whole maps of attention are kept up to " +
                       std::to_string(kMaxTraceBytes >> 20) + " MB, these have " +
                       std::to_string(num_bytes >> 20) + " (the report has heat maps only)";
    return;
  }
  for (auto& tensor : tensors) snapshot.tensors.push_back(std::move(tensor));
}

std::vector<int64_t> numbers_of_classes(const data::ImageSet& set) {
  std::vector<int64_t> numbers;
  std::set<int64_t> seen;
  for (int64_t i = 0; i < set.size() && std::ssize(numbers) < kSnapshotPictures; ++i) {
    if (seen.insert(set.label(i)).second) numbers.push_back(i);
  }
  return numbers;
}

/// What the model says, as the data call it.
std::string prediction(const at::Tensor& logits, const data::ImageSet& set) {
  const std::vector<int64_t>& columns = set.class_columns();
  const at::Tensor own = columns.empty() ? logits : logits.index_select(1, at::tensor(columns));
  return set.class_names()[static_cast<size_t>(own.argmax(1).item<int64_t>())];
}

}  // namespace

at::Tensor attention_rollout(const std::vector<at::Tensor>& maps) {
  const int64_t N = maps.back().size(1);
  at::Tensor rollout = torch::eye(N, torch::kDouble);
  for (const at::Tensor& map : maps) {
    if (map.size(1) != N) continue;
    const at::Tensor mixed = (map.to(at::kDouble).mean(0) + torch::eye(N, torch::kDouble)) / 2;
    rollout = (mixed / mixed.sum(1, /*keepdim=*/true)).matmul(rollout);
  }
  return rollout;
}

at::Tensor heat_map(const at::Tensor& maps, int64_t num_prefix) {
  const int64_t num_patches = maps.size(-1) - num_prefix;
  const auto G = static_cast<int64_t>(std::lround(std::sqrt(static_cast<double>(num_patches))));
  TORCH_CHECK(num_patches > 0 && G * G == num_patches,
              "heat_map: patches must be a square grid, got ", num_patches);
  const at::Tensor row = num_prefix > 0 ? maps.select(-2, 0) : maps.mean(-2);  // (.., N)
  return row.narrow(-1, num_prefix, num_patches).unflatten(-1, {G, G});
}

std::optional<PictureHeat> picture_heat(const nn::Trace& trace, int64_t num_prefix) {
  const std::vector<at::Tensor> maps = maps_of(trace);
  if (maps.empty()) return std::nullopt;
  PictureHeat heat{.layers = {}, .rollout = heat_map(attention_rollout(maps), num_prefix)};
  for (const at::Tensor& map : maps) heat.layers.push_back(heat_map(map, num_prefix));
  return heat;
}

Snapshot picture_snapshot(Task& task, const models::ImageModel& model, const ImageEvalSet& set) {
  Snapshot snapshot;
  if (model.num_tokens() > kMaxSnapshotTokens) {
    snapshot.missing = "snapshot: maps of attention are kept of at most " +
                       std::to_string(kMaxSnapshotTokens) + " tokens, the model has " +
                       std::to_string(model.num_tokens()) + " (the report has no heat maps of it)";
    return snapshot;
  }
  const at::NoGradGuard no_grad;
  const int64_t num_prefix = model.num_prefix_tokens();
  std::vector<at::Tensor> pictures, rollouts;
  std::vector<std::vector<at::Tensor>> layers;
  json described = json::array();
  for (const int64_t number : numbers_of_classes(set.set())) {
    const Batch batch = set.get(number);
    nn::Trace trace;
    auto pass = nn::Pass::of_trace(trace);
    const at::Tensor logits = task.forward(batch, pass);
    const std::optional<PictureHeat> heat = picture_heat(trace, num_prefix);
    if (!heat) {
      snapshot.missing =
          "snapshot: the attention of the model leaves no maps (the report has no heat maps of it)";
      return snapshot;
    }
    if (pictures.empty()) add_trace(trace, snapshot);
    pictures.push_back(batch.input[0]);
    rollouts.push_back(heat->rollout);
    layers.resize(heat->layers.size());
    for (size_t i = 0; i < layers.size(); ++i) layers[i].push_back(heat->layers[i]);
    const auto label = static_cast<size_t>(set.set().label(number));
    described.push_back({{"number", number},
                         {"class", set.set().class_names()[label]},
                         {"said", prediction(logits, set.set())}});
  }
  snapshot.tensors.emplace_back("pictures", at::stack(pictures));                // (P, 3, S, S)
  snapshot.tensors.emplace_back("rollout", at::stack(rollouts).to(at::kFloat));  // (P, G, G)
  for (size_t i = 0; i < layers.size(); ++i) {
    snapshot.tensors.emplace_back("layers." + std::to_string(i) + ".heat",
                                  at::stack(layers[i]).to(at::kFloat));  // (P, H, G, G)
  }
  snapshot.metadata = {{"data", set.set().name()},
                       // A folder may have any name: what is no UTF-8 is replaced.
                       {"pictures", described.dump(-1, ' ', false, json::error_handler_t::replace)},
                       {"prefix_tokens", std::to_string(num_prefix)},
                       {"split", to_string(set.options().split)}};
  return snapshot;
}

}  // namespace elliptical::tasks
