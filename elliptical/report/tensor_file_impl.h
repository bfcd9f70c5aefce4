// SPDX-License-Identifier: MIT
//
// How files of tensors beside records are read, and how numbers and pictures of them are packed.
#pragma once

#include <filesystem>
#include <functional>
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

/// What the header says about a tensor that must be there, with this type and number of dimensions,
/// none of them 0; DataError. Nothing of it is read. As its bytes are those of the file and no
/// dimension is 0, each product of some of its dimensions is at most the size of the file.
const TensorEntry& require_tensor(const SafetensorsFile& file,
                                  const std::string& name,
                                  ElementType type,
                                  size_t dimensions);

/// The same, read.
template <class T>
FileTensor<T> read_tensor(const SafetensorsFile& file,
                          const std::string& name,
                          ElementType type,
                          size_t dimensions) {
  const TensorEntry& entry = require_tensor(file, name, type, dimensions);
  FileTensor<T> tensor{entry.shape, std::vector<T>(static_cast<size_t>(entry.num_elements()))};
  file.read(entry, std::as_writable_bytes(std::span(tensor.values)));
  return tensor;
}

/// Calls `use` on a file. Whatever is wrong with the file costs what is shown of it, never the
/// page: it becomes one of the `problems`, with `lost` behind it.
void use_file(const std::filesystem::path& path,
              const std::string& lost,
              std::vector<std::string>& problems,
              const std::function<void()>& use);

/// "layers.3.attention"
std::string layer_name(int64_t layer, const char* what);

/// What the metadata say, a name or a number; "": nothing. Long ones are DataErrors.
std::string metadata(const SafetensorsFile& file, const std::string& name);
/// A list of them, as JSON; DataError where it is none, naming file and list.
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
