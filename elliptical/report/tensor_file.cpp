// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>

#include "elliptical/base/json.h"
#include "elliptical/report/tensor_file_impl.h"

namespace elliptical::report {
namespace {

constexpr int64_t kChannels = 3;
constexpr uint64_t kMaxTensorBytes = uint64_t{1} << 30;
// What a page repeats of the metadata: a name, and a list of some thousand words.
constexpr size_t kMaxLabelBytes = 4096, kMaxListBytes = 1 << 20;

std::string bounded_metadata(const SafetensorsFile& file,
                             const std::string& name,
                             size_t max_bytes) {
  const auto found = file.header().metadata.find(name);
  if (found == file.header().metadata.end()) return "";
  if (found->second.size() > max_bytes) {
    throw DataError(file.path().string() + ": " + name + " of the metadata must have at most " +
                    std::to_string(max_bytes) + " bytes, has " +
                    std::to_string(found->second.size()));
  }
  return found->second;
}

}  // namespace

const TensorEntry& require_tensor(const SafetensorsFile& file,
                                  const std::string& name,
                                  ElementType type,
                                  size_t dimensions) {
  const TensorEntry* entry = file.find(name);
  if (entry == nullptr || entry->type != type || entry->shape.size() != dimensions ||
      entry->end == entry->begin || entry->end - entry->begin > kMaxTensorBytes) {
    throw DataError(file.path().string() + ": " + name + " must be " +
                    std::string(to_string(type)) + " with " + std::to_string(dimensions) +
                    " dimensions, none of them 0, and at most 1 GB, " +
                    (entry == nullptr ? "is missing" : "is something else"));
  }
  return *entry;
}

void use_file(const std::filesystem::path& path,
              const std::string& lost,
              std::vector<std::string>& problems,
              const std::function<void()>& use) {
  try {
    use();
  } catch (const DataError& error) {
    problems.push_back(std::string(error.what()) + " (" + lost + ")");
  } catch (const std::exception& error) {  // memory, for instance
    problems.push_back(path.string() + ": can not be used: " + error.what() + " (" + lost + ")");
  }
}

std::string layer_name(int64_t layer, const char* what) {
  return "layers." + std::to_string(layer) + "." + what;
}

std::string metadata(const SafetensorsFile& file, const std::string& name) {
  return bounded_metadata(file, name, kMaxLabelBytes);
}

nlohmann::json metadata_json(const SafetensorsFile& file, const std::string& name) {
  return parse_json<nlohmann::json>(bounded_metadata(file, name, kMaxListBytes),
                                    file.path().string() + ": " + name + " of the metadata");
}

std::string root_bytes(std::span<const double> weights, double largest) {
  std::string bytes;
  for (const double weight : weights) {
    const double share = largest > 0 ? std::sqrt(std::max(0.0, weight) / largest) : 0.0;
    bytes +=
        static_cast<char>(std::isfinite(weight) ? std::lround(254 * std::min(1.0, share)) : 255);
  }
  return bytes;
}

double largest_of(std::span<const double> weights) {
  double largest = 0;
  for (const double weight : weights) {
    if (std::isfinite(weight)) largest = std::max(largest, weight);
  }
  return largest;
}

std::vector<double> reduced_picture(const float* picture, int64_t h, int64_t w, int64_t cell) {
  const int64_t height = (h + cell - 1) / cell, width = (w + cell - 1) / cell;
  std::vector<double> small(static_cast<size_t>(height * width * kChannels));
  for (int64_t c = 0; c < kChannels; ++c) {
    for (int64_t y = 0; y < h; ++y) {
      for (int64_t x = 0; x < w; ++x) {
        const int64_t rows = std::min(cell, h - y / cell * cell),
                      columns = std::min(cell, w - x / cell * cell);
        small[static_cast<size_t>((y / cell * width + x / cell) * kChannels + c)] +=
            static_cast<double>(picture[(c * h + y) * w + x]) / static_cast<double>(rows * columns);
      }
    }
  }
  return small;
}

std::string pixel_bytes(const std::vector<double>& reduced) {
  std::string bytes;
  for (const double value : reduced) {
    bytes += static_cast<char>(std::lround(255 * std::clamp(value, 0.0, 1.0)));
  }
  return bytes;
}

}  // namespace elliptical::report
