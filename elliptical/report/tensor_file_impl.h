// SPDX-License-Identifier: MIT
//
// How files of tensors beside records are read, and how numbers and pictures of them are packed.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "elliptical/base/errors.h"
#include "elliptical/base/safetensors.h"

namespace elliptical::report {

template <class T>
struct FileTensor {
  std::vector<int64_t> shape;
  std::vector<T> values;
};

/// A tensor that must be there, with this type and number of dimensions; DataError.
template <class T>
FileTensor<T> read_tensor(const SafetensorsFile& file,
                          const std::string& name,
                          ElementType type,
                          size_t dimensions) {
  constexpr uint64_t kMaxTensorBytes = uint64_t{1} << 30;
  const TensorEntry* entry = file.find(name);
  if (entry == nullptr || entry->type != type || entry->shape.size() != dimensions ||
      entry->end - entry->begin > kMaxTensorBytes) {
    throw DataError(file.path().string() + ": " + name + " must be " +
                    std::string(to_string(type)) + " with " + std::to_string(dimensions) +
                    " dimensions and at most 1 GB, " +
                    (entry == nullptr ? "is missing" : "is something else"));
  }
  FileTensor<T> tensor{entry->shape, std::vector<T>(static_cast<size_t>(entry->num_elements()))};
  file.read(*entry, std::as_writable_bytes(std::span(tensor.values)));
  return tensor;
}

/// "layers.3.attention"
std::string layer_name(int64_t layer, const char* what);

/// What the metadata say; "": nothing.
std::string metadata(const SafetensorsFile& file, const std::string& name);
/// The same, read as JSON; discarded where it is none.
nlohmann::json metadata_json(const SafetensorsFile& file, const std::string& name);

/// Square roots in steps of 1/254 of the largest; 255 is what is no finite number.
std::string root_bytes(std::span<const double> weights, double largest);
/// The largest finite one, 0 at least.
double largest_of(std::span<const double> weights);

/// (3, h, w) in [0, 1] -> (ceil(h / cell), ceil(w / cell), 3), means of cells
std::vector<double> reduced_picture(const float* picture, int64_t h, int64_t w, int64_t cell);
/// The same as bytes.
std::string pixel_bytes(const std::vector<double>& reduced);

}  // namespace elliptical::report
