// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>

#include "elliptical/report/tensor_file_impl.h"

namespace elliptical::report {
namespace {

constexpr int64_t kChannels = 3;

}  // namespace

std::string layer_name(int64_t layer, const char* what) {
  return "layers." + std::to_string(layer) + "." + what;
}

std::string metadata(const SafetensorsFile& file, const std::string& name) {
  const auto found = file.header().metadata.find(name);
  return found == file.header().metadata.end() ? "" : found->second;
}

nlohmann::json metadata_json(const SafetensorsFile& file, const std::string& name) {
  return nlohmann::json::parse(metadata(file, name), nullptr, false);
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
