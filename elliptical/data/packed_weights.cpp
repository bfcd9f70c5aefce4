// SPDX-License-Identifier: MIT
#include "elliptical/data/packed_weights.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

#include "elliptical/base/errors.h"
#include "elliptical/base/files.h"
#include "elliptical/base/utf8.h"
#include "elliptical/data/xz.h"

namespace elliptical::data {
namespace {

constexpr const char* kTable = "index.tsv";
constexpr std::string_view kHeader = "name\tshape\toffset_elements\tnum_elements";
constexpr size_t kMaxDimensions = 8;
/// What no file exceeds: half a billion parameters; the largest model of the paper has 87 million.
constexpr uint64_t kMaxBytes = uint64_t{1} << 30;
constexpr uint64_t kMaxTableBytes = 1 << 24;
constexpr int64_t kMaxValues = static_cast<int64_t>(kMaxBytes / 2);

/// A decimal number from 0 to kMaxValues without sign or blanks, or nothing.
std::optional<int64_t> number(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (!whole || text.front() == '-' || value > kMaxValues) return std::nullopt;
  return value;
}

/// The text up to the next `separator`, which is taken away with it; all of it when there is none.
std::string_view next_part(std::string_view& rest, char separator) {
  const size_t end = rest.find(separator);
  const std::string_view part = rest.substr(0, end);
  rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  return part;
}

/// Of the file of weights, as the last column of the table says; what is no number there is refused
/// later.
uint64_t claimed_bytes(std::string_view table) {
  uint64_t num_bytes = 0;
  while (!table.empty()) {
    const std::string_view line = next_part(table, '\n');
    num_bytes += 2 * static_cast<uint64_t>(number(line.substr(line.rfind('\t') + 1)).value_or(0));
  }
  return num_bytes;
}

struct Line {
  const std::string& file;
  int64_t number;

  [[noreturn]] void refuse(const std::string& what) const {
    throw DataError(file + ":" + std::to_string(number) + ": " + what);
  }
};

/// The sizes of "192x3x16x16", whose product is `num_elements`.
std::vector<int64_t> parse_shape(std::string_view text, int64_t num_elements, const Line& line) {
  std::vector<int64_t> shape;
  int64_t product = 1;
  for (std::string_view rest = text; !rest.empty();) {
    const std::optional<int64_t> size = number(next_part(rest, 'x'));
    if (!size || *size < 1 || shape.size() == kMaxDimensions || product > kMaxValues / *size) {
      line.refuse("a shape must be sizes with x between them, at most 8, got \"" +
                  std::string(text.substr(0, 60)) + "\"");
    }
    product *= *size;
    shape.push_back(*size);
  }
  if (shape.empty() || text.back() == 'x' || product != num_elements) {
    line.refuse("a shape must give num_elements, " + std::to_string(num_elements) + ", got \"" +
                std::string(text.substr(0, 60)) + "\"");
  }
  return shape;
}

}  // namespace

std::vector<PackedTensor> parse_packed_weights(std::string_view table,
                                               const std::string& name,
                                               int64_t num_values) {
  Line line{name, 1};
  if (next_part(table, '\n') != kHeader) {
    line.refuse("the first line must be \"name shape offset_elements num_elements\" with tabs");
  }
  std::vector<PackedTensor> tensors;
  std::set<std::string> names;
  int64_t covered = 0;
  while (!table.empty()) {
    ++line.number;
    std::string_view rest = next_part(table, '\n');
    PackedTensor tensor;
    tensor.name = next_part(rest, '\t');
    const std::string_view shape = next_part(rest, '\t');
    const std::optional<int64_t> offset = number(next_part(rest, '\t'));
    const std::optional<int64_t> count = number(rest);
    if (tensor.name.empty() || find_invalid_utf8(tensor.name) != std::string_view::npos ||
        !offset || !count) {
      line.refuse("a line must be a name, a shape and two counts with tabs between them");
    }
    if (!names.insert(tensor.name).second) line.refuse("holds " + tensor.name + " once more");
    if (*offset != covered || *count > num_values - covered) {
      line.refuse("a tensor must start at element " + std::to_string(covered) + " and end within " +
                  std::to_string(num_values) + ", got " + std::to_string(*offset) + " and " +
                  std::to_string(*count) + " elements");
    }
    tensor.shape = parse_shape(shape, *count, line);
    tensor.offset = *offset;
    tensor.num_elements = *count;
    covered += *count;
    tensors.push_back(std::move(tensor));
  }
  if (covered != num_values) {
    line.refuse("the tensors must be all " + std::to_string(num_values) +
                " elements of the file of weights, are " + std::to_string(covered));
  }
  return tensors;
}

bool is_packed_weights(const std::filesystem::path& folder) {
  return std::filesystem::is_regular_file(folder / kTable);
}

PackedWeights read_packed_weights(const std::filesystem::path& folder) {
  std::set<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::filesystem::path file = entry.path();
    if (file.extension() == ".xz") file.replace_extension();
    if (file.extension() == ".f16") files.insert(file);
  }
  if (files.size() != 1) {
    throw DataError(folder.string() + ": must hold one file of weights, .f16 or .f16.xz, holds " +
                    std::to_string(files.size()));
  }
  // The table first: it says how much is to be unpacked.
  const std::filesystem::path table = folder / kTable;
  const std::string text = read_file(table, kMaxTableBytes);
  PackedWeights weights;
  weights.bytes = read_plain_or_xz(*files.begin(), std::min(claimed_bytes(text), kMaxBytes));
  if (weights.bytes.size() % 2 != 0) {
    throw DataError(files.begin()->string() + ": must be half floats of two bytes, has " +
                    std::to_string(weights.bytes.size()) + " bytes");
  }
  weights.tensors =
      parse_packed_weights(text, table.string(), static_cast<int64_t>(weights.bytes.size() / 2));
  return weights;
}

}  // namespace elliptical::data
