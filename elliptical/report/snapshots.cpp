// SPDX-License-Identifier: MIT
#include "elliptical/report/snapshots.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "elliptical/report/tensor_file_impl.h"

namespace elliptical::report {
namespace {

using nlohmann::json;

constexpr int64_t kMaxCells = 96, kMinCells = 16, kMaxShown = 64, kMinShown = 12;
// Maps of a layer have at least a byte a head, whatever else is left out of a page.
constexpr int64_t kMaxLayers = 1024, kMaxHeads = 1024;

using Tensor = FileTensor<float>;

/// The sizes of a layer. No tensor is read before they are known to agree.
struct LayerShape {
  int64_t H = 0, N = 0, D = 0;
  bool has_metric = false;
};

void require_shape(const SafetensorsFile& file,
                   const TensorEntry& entry,
                   const std::vector<int64_t>& shape) {
  if (entry.shape == shape) return;
  std::string wanted;
  for (const int64_t size : shape) wanted += (wanted.empty() ? "" : ", ") + std::to_string(size);
  throw DataError(file.path().string() + ": " + entry.name + " must be (" + wanted +
                  "), has another shape");
}

LayerShape check_layer(const SafetensorsFile& file, int64_t layer) {
  const auto entry = [&](const char* what) -> const TensorEntry& {
    return require_tensor(file, layer_name(layer, what), ElementType::kF32, 3);
  };
  const TensorEntry& attention = entry("attention");
  const TensorEntry& queries = entry("queries");
  LayerShape sizes{.H = attention.shape[0],
                   .N = attention.shape[1],
                   .D = queries.shape[2],
                   .has_metric = file.find(layer_name(layer, "metric")) != nullptr};
  const auto& [H, N, D, has_metric] = sizes;
  require_shape(file, attention, {H, N, N});
  require_shape(file, queries, {H, N, D});
  require_shape(file, entry("keys"), {H, N, D});
  if (has_metric) {
    const TensorEntry& metric = entry("metric");
    require_shape(file, metric, {metric.shape[0] == 1 ? 1 : H, metric.shape[1] == 1 ? 1 : N, D});
  }
  if (H > kMaxHeads) {
    throw DataError(file.path().string() + ": " + attention.name + " must have at most " +
                    std::to_string(kMaxHeads) + " heads, has " + std::to_string(H));
  }
  return sizes;
}

/// (H|1, N|1, D), one metric for all heads or tokens, -> (H, N, D), as large as the queries
Tensor expanded(const Tensor& metric, int64_t H, int64_t N) {
  const int64_t D = metric.shape[2], rows = metric.shape[1];
  Tensor result{{H, N, D}, {}};
  result.values.reserve(static_cast<size_t>(H * N * D));
  for (int64_t h = 0; h < H; ++h) {
    for (int64_t n = 0; n < N; ++n) {
      const int64_t row = (metric.shape[0] == 1 ? 0 : h) * rows + (rows == 1 ? 0 : n);
      const auto begin = metric.values.begin() + row * D;
      result.values.insert(result.values.end(), begin, begin + D);
    }
  }
  return result;
}

/// How much of a layer is kept.
struct Plan {
  int64_t cell = 1;   ///< tokens of a cell of the map
  int64_t shown = 0;  ///< tokens that have queries and keys; 0: none fit
};

Plan make_plan(int64_t H, int64_t N, int64_t D, size_t max_bytes) {
  // base64 is 4 bytes for 3; a half of the bytes for maps, the other for everything else.
  const double half = static_cast<double>(max_bytes) * 3 / 4 / 2;
  const auto heads = static_cast<double>(H);
  Plan plan;
  const auto cells = [&] { return (N + plan.cell - 1) / plan.cell; };
  while (cells() > kMaxCells || (cells() > kMinCells && heads * std::pow(cells(), 2) > half)) {
    ++plan.cell;
  }
  for (plan.shown = std::min(N, kMaxShown); plan.shown > 0; --plan.shown) {
    const auto shown = static_cast<double>(plan.shown);
    if (heads * (shown * shown + 3 * 2 * shown * static_cast<double>(D)) <= half) break;
  }
  if (plan.shown < std::min(N, kMinShown)) plan.shown = 0;
  return plan;
}

/// (H, N, N) -> bytes of (H, P, P) with P cells of `cell` tokens for the first `tokens` of them,
/// and the largest weight of each head.
void pack_maps(const Tensor& attention, int64_t tokens, int64_t cell, json& bytes, json& scales) {
  const int64_t H = attention.shape[0], N = attention.shape[1], P = (tokens + cell - 1) / cell;
  std::string all;
  scales = json::array();
  for (int64_t h = 0; h < H; ++h) {
    std::vector<double> map(static_cast<size_t>(P * P));
    for (int64_t q = 0; q < tokens; ++q) {
      const auto rows = static_cast<double>(std::min(cell, tokens - q / cell * cell));
      for (int64_t k = 0; k < tokens; ++k) {
        const auto weight = attention.values[static_cast<size_t>((h * N + q) * N + k)];
        map[static_cast<size_t>(q / cell * P + k / cell)] += static_cast<double>(weight) / rows;
      }
    }
    const double largest = largest_of(map);
    all += root_bytes(map, largest);
    scales.push_back(largest);
  }
  bytes = base64(all);
}

/// (H, N, D) -> two bytes a number for the first `tokens`, and the largest magnitude; -32768 is
/// what is no finite number.
void pack_vectors(const Tensor& vectors, int64_t tokens, json& bytes, json& scale) {
  const int64_t H = vectors.shape[0], N = vectors.shape[1], D = vectors.shape[2];
  float largest = 0;
  for (const float value : vectors.values) {
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  }
  std::string all;
  for (int64_t h = 0; h < H; ++h) {
    for (int64_t i = 0; i < tokens * D; ++i) {
      const float value = vectors.values[static_cast<size_t>(h * N * D + i)];
      const float share = largest > 0 ? value / largest : 0.0F;
      const auto number = static_cast<uint16_t>(
          std::isfinite(value) ? static_cast<int16_t>(std::lround(32767 * share))
                               : int16_t{-32768});
      all += static_cast<char>(number & 0xFF);
      all += static_cast<char>(number >> 8);
    }
  }
  bytes = base64(all);
  scale = largest;
}

json read_words(const SafetensorsFile& file, int64_t N) {
  json words = metadata_json(file, "words");
  const bool usable =
      words.is_array() && static_cast<int64_t>(words.size()) == N &&
      std::all_of(words.begin(), words.end(), [](const json& word) { return word.is_string(); });
  if (!usable) {
    throw DataError(file.path().string() + ": words of the metadata must be a list of " +
                    std::to_string(N) + " texts");
  }
  return words;
}

/// Layer number `layer` in `max_bytes`, with its number of tokens.
json read_layer(const SafetensorsFile& file, int64_t layer, size_t max_bytes) {
  const auto [H, N, D, has_metric] = check_layer(file, layer);
  const auto read = [&](const char* what) {
    return read_tensor<float>(file, layer_name(layer, what), ElementType::kF32, 3);
  };
  const Plan plan = make_plan(H, N, D, max_bytes);
  json entry = {
      {"heads", H}, {"dim", D}, {"tokens", N}, {"cell", plan.cell}, {"shown", plan.shown}};
  const Tensor attention = read("attention");
  pack_maps(attention, N, plan.cell, entry["map"], entry["map_scales"]);
  if (plan.shown > 0) {
    if (plan.cell > 1 || plan.shown < N) {
      pack_maps(attention, plan.shown, 1, entry["weights"], entry["weight_scales"]);
    }
    pack_vectors(read("queries"), plan.shown, entry["queries"], entry["query_scale"]);
    pack_vectors(read("keys"), plan.shown, entry["keys"], entry["key_scale"]);
    if (has_metric) {
      pack_vectors(expanded(read("metric"), H, N), plan.shown, entry["metric"],
                   entry["metric_scale"]);
    }
  }
  return entry;
}

/// Nothing where a file of pictures has heat maps only.
std::optional<json> read_snapshot(const std::filesystem::path& path, size_t max_bytes) {
  const SafetensorsFile file(path);
  const bool is_text = file.find("pictures") == nullptr;
  int64_t num_layers = 0;
  while (file.find(layer_name(num_layers, "attention")) != nullptr) ++num_layers;
  if (num_layers == 0 && !is_text) return std::nullopt;
  if (num_layers == 0) throw DataError(path.string() + ": must have layers.0.attention, has not");
  if (num_layers > kMaxLayers) {
    throw DataError(path.string() + ": must have at most " + std::to_string(kMaxLayers) +
                    " layers, has " + std::to_string(num_layers));
  }

  json snapshot = {{"layers", json::array()},
                   {"step", metadata(file, "step")},
                   {"split", metadata(file, "split")}};
  for (int64_t layer = 0; layer < num_layers; ++layer) {
    const json entry = read_layer(file, layer, max_bytes / static_cast<size_t>(num_layers));
    snapshot["layers"].push_back(entry);
    if (!is_text) continue;
    if (entry["tokens"] != snapshot["layers"][0]["tokens"]) {
      throw DataError(path.string() + ": all layers must have the same number of tokens");
    }
  }
  if (is_text) {
    snapshot["words"] = read_words(file, snapshot["layers"][0]["tokens"]);
  } else {
    const int64_t prefix = std::atoll(metadata(file, "prefix_tokens").c_str());
    snapshot["prefix"] = std::clamp<int64_t>(prefix, 0, snapshot["layers"][0]["tokens"]);
  }
  return snapshot;
}

}  // namespace

std::string base64(std::string_view bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    const size_t length = std::min<size_t>(3, bytes.size() - i);
    for (size_t j = 0; j < 3; ++j) {
      group = group << 8 | (j < length ? static_cast<unsigned char>(bytes[i + j]) : 0U);
    }
    for (size_t j = 0; j < 4; ++j) {
      text += j <= length ? kDigits[group >> (18 - 6 * j) & 63] : '=';
    }
  }
  return text;
}

json read_snapshots(const std::vector<RunData>& runs,
                    const std::vector<size_t>& chosen,
                    std::vector<std::string>& problems,
                    size_t max_bytes) {
  std::vector<size_t> with_snapshot;
  for (const size_t i : chosen) {
    if (!runs[i].snapshot.empty()) with_snapshot.push_back(i);
  }
  json snapshots = json::array();
  for (const size_t i : with_snapshot) {
    use_file(runs[i].snapshot, "its heads are not shown", problems, [&] {
      auto snapshot = read_snapshot(runs[i].snapshot, max_bytes / with_snapshot.size());
      if (!snapshot) return;
      (*snapshot)["run"] = i;
      snapshots.push_back(std::move(*snapshot));
    });
  }
  return snapshots;
}

}  // namespace elliptical::report
