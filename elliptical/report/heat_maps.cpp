// SPDX-License-Identifier: MIT
#include "elliptical/report/heat_maps.h"

#include <algorithm>
#include <optional>

#include "elliptical/report/data_table.h"
#include "elliptical/report/snapshots.h"
#include "elliptical/report/tensor_file_impl.h"

namespace elliptical::report {
namespace {

using nlohmann::json;
using Tensor = FileTensor<float>;

constexpr int64_t kMaxHeatSide = 112, kScaleBytes = 8;
/// One picture of a run is shown even where its share of the page is smaller, up to here.
constexpr size_t kMaxOneBytes = 2'000'000;

/// A file of pictures as it is.
struct HeatFile {
  Tensor pictures, rollout;
  std::vector<Tensor> layers;
  json described;  ///< number, class and said of each picture
  std::string data, split;
};

/// Whether a file is a snapshot of pictures. One that can not be opened is named by snapshots.cpp.
bool has_pictures(const std::filesystem::path& path) {
  try {
    return SafetensorsFile(path).find("pictures") != nullptr;
  } catch (const DataError&) {
    return false;
  }
}

HeatFile read_file(const std::filesystem::path& path) {
  const SafetensorsFile file(path);
  const auto refuse = [&](const std::string& why) { throw DataError(path.string() + ": " + why); };
  HeatFile heat{.pictures = read_tensor<float>(file, "pictures", ElementType::kF32, 4),
                .rollout = read_tensor<float>(file, "rollout", ElementType::kF32, 3),
                .layers = {},
                .described = metadata_json(file, "pictures"),
                .data = metadata(file, "data"),
                .split = metadata(file, "split")};
  const auto& shape = heat.pictures.shape;
  const int64_t P = shape[0], S = shape[2];
  if (shape != std::vector<int64_t>{P, 3, S, S}) {
    refuse("pictures must be (P, 3, S, S), have another shape");
  }
  const auto is_text = [](const json& each, const char* name) {
    return each.is_object() && each.contains(name) && each[name].is_string();
  };
  const bool is_described =
      heat.described.is_array() && std::ssize(heat.described) == P &&
      std::all_of(heat.described.begin(), heat.described.end(), [&](const json& each) {
        return is_text(each, "class") && is_text(each, "said") && each.contains("number") &&
               each["number"].is_number_integer();
      });
  if (!is_described) {
    refuse("pictures of the metadata must be a list of " + std::to_string(P) +
           " with number, class and said");
  }
  while (file.find(layer_name(std::ssize(heat.layers), "heat")) != nullptr) {
    const std::string name = layer_name(std::ssize(heat.layers), "heat");
    const Tensor& layer =
        heat.layers.emplace_back(read_tensor<float>(file, name, ElementType::kF32, 4));
    const int64_t H = layer.shape[1], G = layer.shape[2];
    if (layer.shape != std::vector<int64_t>{P, H, G, G}) {
      refuse(name + " must be (" + std::to_string(P) + ", H, G, G), has another shape");
    }
  }
  if (heat.layers.empty()) refuse("must have layers.0.heat, has not");
  const int64_t G = heat.rollout.shape[1];
  if (heat.rollout.shape != std::vector<int64_t>{P, G, G}) {
    refuse("rollout must be (" + std::to_string(P) + ", G, G), has another shape");
  }
  return heat;
}

/// How much of a run is kept.
struct HeatPlan {
  int64_t num_pictures = 0;
  bool has_heads = true;
};

HeatPlan make_heat_plan(const HeatFile& heat, size_t max_bytes, const std::filesystem::path& path) {
  HeatPlan plan{.num_pictures = heat.pictures.shape[0]};
  const auto num_bytes = [&] {  // base64 is 4 bytes for 3, a scale some more
    int64_t bytes = heat.rollout.shape[1] * heat.rollout.shape[1];
    for (const Tensor& layer : heat.layers) {
      const int64_t maps = 1 + (plan.has_heads ? layer.shape[1] : 0);
      bytes += maps * (layer.shape[2] * layer.shape[2] + kScaleBytes);
    }
    return static_cast<size_t>(plan.num_pictures * bytes * 4 / 3);
  };
  if (num_bytes() > max_bytes) plan.has_heads = false;
  while (num_bytes() > max_bytes && plan.num_pictures > 1) --plan.num_pictures;
  if (num_bytes() > std::max(max_bytes, kMaxOneBytes)) {
    throw DataError(path.string() + ": maps of one picture must fit " +
                    std::to_string(kMaxOneBytes) + " bytes of a page, need " +
                    std::to_string(num_bytes()));
  }
  return plan;
}

std::string packed_map(std::span<const double> map, json& scales) {
  const double largest = largest_of(map);
  scales.push_back(chart_number(largest));
  return root_bytes(map, largest);
}

json pack_layer(const Tensor& layer, const HeatPlan& plan) {
  const int64_t H = layer.shape[1], G = layer.shape[2];
  const auto size = static_cast<size_t>(G * G);
  std::string maps;
  json scales = json::array();
  for (int64_t p = 0; p < plan.num_pictures; ++p) {
    const auto begin = layer.values.begin() + p * H * G * G;
    const std::vector<double> heads(begin, begin + H * G * G);
    std::vector<double> mean(size);
    for (size_t i = 0; i < heads.size(); ++i) mean[i % size] += heads[i] / static_cast<double>(H);
    maps += packed_map(mean, scales);
    for (size_t h = 0; plan.has_heads && h < static_cast<size_t>(H); ++h) {
      maps += packed_map(std::span(heads).subspan(h * size, size), scales);
    }
  }
  return {{"heads", plan.has_heads ? H : 0},
          {"grid", G},
          {"maps", base64(maps)},
          {"scales", std::move(scales)}};
}

json pack_picture(const HeatFile& heat, int64_t p) {
  const int64_t S = heat.pictures.shape[2], cell = (S + kMaxHeatSide - 1) / kMaxHeatSide;
  const float* pixels = &heat.pictures.values[static_cast<size_t>(p * 3 * S * S)];
  const json& described = heat.described[static_cast<size_t>(p)];
  return {{"name", described["class"]},
          {"number", described["number"]},
          {"side", (S + cell - 1) / cell},
          {"pixels", base64(pixel_bytes(reduced_picture(pixels, S, S, cell)))}};
}

/// The place of a picture among those of the page, which it joins; nothing when the page is full.
std::optional<size_t> place_of(json picture, json& pictures) {
  const auto found = std::find(pictures.begin(), pictures.end(), picture);
  if (found != pictures.end()) return static_cast<size_t>(found - pictures.begin());
  if (pictures.size() == kMaxHeatPictures) return std::nullopt;
  pictures.push_back(std::move(picture));
  return pictures.size() - 1;
}

json pack_run(const HeatFile& heat, HeatPlan plan, json& pictures) {
  const int64_t G = heat.rollout.shape[1];
  json run = {{"data", heat.data},
              {"split", heat.split},
              {"grid", G},
              {"layers", json::array()},
              {"shown", json::array()}};
  for (int64_t p = 0; p < plan.num_pictures; ++p) {
    const std::optional<size_t> place = place_of(pack_picture(heat, p), pictures);
    if (!place) {
      plan.num_pictures = p;
      break;
    }
    const auto begin = heat.rollout.values.begin() + p * G * G;
    const std::vector<double> rollout(begin, begin + G * G);
    json scales = json::array();
    const std::string bytes = base64(packed_map(rollout, scales));
    run["shown"].push_back({{"picture", *place},
                            {"said", heat.described[static_cast<size_t>(p)]["said"]},
                            {"rollout", bytes},
                            {"scale", scales[0]}});
  }
  for (const Tensor& layer : heat.layers) run["layers"].push_back(pack_layer(layer, plan));
  return run;
}

}  // namespace

json read_heat_maps(const std::vector<RunData>& runs,
                    const std::vector<size_t>& chosen,
                    std::vector<std::string>& problems,
                    size_t max_bytes) {
  const std::string lost = "its heat maps are not shown";
  std::vector<std::pair<size_t, HeatFile>> files;
  for (const size_t i : chosen) {
    if (runs[i].snapshot.empty() || !has_pictures(runs[i].snapshot)) continue;
    use_file(runs[i].snapshot, lost, problems,
             [&] { files.emplace_back(i, read_file(runs[i].snapshot)); });
  }
  json all = {{"pictures", json::array()}, {"runs", json::array()}};
  size_t num_left = 0;
  for (const auto& file : files) {
    const std::filesystem::path& path = runs[file.first].snapshot;
    use_file(path, lost, problems, [&] {
      const HeatPlan plan = make_heat_plan(file.second, max_bytes / files.size(), path);
      json run = pack_run(file.second, plan, all["pictures"]);
      num_left += run["shown"].empty() ? 1 : 0;
      if (run["shown"].empty()) return;
      run["run"] = file.first;
      all["runs"].push_back(std::move(run));
    });
  }
  if (num_left > 0) {
    problems.push_back("heat maps: at most " + std::to_string(kMaxHeatPictures) +
                       " different pictures are shown, those of " + std::to_string(num_left) +
                       " more run" + (num_left > 1 ? "s are" : " is") +
                       " left out (measure all runs on the same split)");
  }
  return all;
}

}  // namespace elliptical::report
