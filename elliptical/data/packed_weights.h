// SPDX-License-Identifier: MIT
//
// Weights of a model as one flat file of half floats with a table beside it:
//     index.tsv       a header line, then `name TAB shape TAB offset_elements TAB num_elements`
//     ANYTHING.f16    little-endian IEEE half floats, tensor after tensor, perhaps as .xz
// A shape is written 192x3x16x16. Everything that the table says is checked against the size of the
// other file before it is used.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace elliptical::data {

struct PackedTensor {
  std::string name;
  std::vector<int64_t> shape;
  int64_t offset = 0;  ///< in elements
  int64_t num_elements = 0;
};

/// The tensors of a table in the order of the file, which they cover without gaps: `num_values`
/// elements. Throws DataError: "FILE:LINE: what must hold, what was given".
std::vector<PackedTensor> parse_packed_weights(std::string_view table,
                                               const std::string& name,
                                               int64_t num_values);

struct PackedWeights {
  std::vector<PackedTensor> tensors;
  std::string bytes;  ///< two for each element
};

/// True for a folder with such a table.
bool is_packed_weights(const std::filesystem::path& folder);
PackedWeights read_packed_weights(const std::filesystem::path& folder);

}  // namespace elliptical::data
