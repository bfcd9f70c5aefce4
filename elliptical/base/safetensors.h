// SPDX-License-Identifier: MIT
//
// The safetensors format, read strictly and written plainly: 8 bytes of header length, a JSON
// header, the tensors' bytes. Knows bytes and shapes, no tensor library. Everything a file claims
// is checked against its size before it is used: lengths, counts, products of dimensions, order,
// gaps and overlaps, duplicate names, UTF-8. Nothing in a file can make the reader crash, hang or
// allocate more than the file is long.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace elliptical {

/// Types of elements, named as the format spells them.
enum class ElementType {
  kBool,
  kU8,
  kI8,
  kI16,
  kU16,
  kF16,
  kBF16,
  kI32,
  kU32,
  kF32,
  kI64,
  kU64,
  kF64
};
std::string_view to_string(ElementType type);
int64_t element_bytes(ElementType type);

struct TensorEntry {
  std::string name;
  ElementType type = ElementType::kF32;
  std::vector<int64_t> shape;
  uint64_t begin = 0, end = 0;  ///< bytes, relative to the end of the header
  int64_t num_elements() const;
};

/// What the header of a file says.
struct SafetensorsHeader {
  std::vector<TensorEntry> tensors;             ///< in the order of their bytes
  std::map<std::string, std::string> metadata;  ///< "__metadata__"
  uint64_t data_offset = 0;                     ///< where the tensors' bytes start in the file
};

/// What no sane file exceeds: bytes of the header, tensors, bytes of a name, dimensions.
inline constexpr uint64_t kMaxHeaderBytes = 100'000'000;
inline constexpr size_t kMaxTensors = 100'000, kMaxNameBytes = 4096, kMaxDimensions = 64;

/// Parses the header at the start of a file. `prefix` are its first bytes, at least
/// `8 + header length` of them if the file is that long; `file_bytes` the length of the file.
/// Throws DataError: "NAME: what is wrong (offset N)".
SafetensorsHeader parse_safetensors_header(std::span<const std::byte> prefix,
                                           uint64_t file_bytes,
                                           const std::string& name);

/// An open file. Reads with pread: a file that shrinks meanwhile is an error, not a signal.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::filesystem::path& path);
  ~SafetensorsFile();
  SafetensorsFile(const SafetensorsFile&) = delete;
  SafetensorsFile& operator=(const SafetensorsFile&) = delete;

  const SafetensorsHeader& header() const { return header_; }
  const std::filesystem::path& path() const { return path_; }
  /// The entry of that name, or null.
  const TensorEntry* find(std::string_view name) const;
  /// Reads a tensor's bytes; `to` must hold exactly entry.end - entry.begin bytes.
  void read(const TensorEntry& entry, std::span<std::byte> to) const;

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  SafetensorsHeader header_;
  std::vector<size_t> by_name_;  ///< indices of header_.tensors in the order of names
};

/// A tensor to be written: contiguous, little endian.
struct TensorBytes {
  std::string name;
  ElementType type = ElementType::kF32;
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;
};

/// Takes the next bytes of a file; throws when it can not.
using ByteSink = std::function<void(std::span<const std::byte>)>;

/// Hands the whole file to `sink`, piece by piece: header, then tensors in the given order.
void write_safetensors(const std::vector<TensorBytes>& tensors,
                       const std::map<std::string, std::string>& metadata,
                       const ByteSink& sink);

}  // namespace elliptical
