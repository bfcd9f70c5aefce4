// SPDX-License-Identifier: MIT
#include "elliptical/base/safetensors.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <numeric>
#include <set>
#include <stdexcept>
#include <system_error>

#include "elliptical/base/errors.h"
#include "elliptical/base/utf8.h"

namespace elliptical {
namespace {

[[noreturn]] void reading_failed(const std::filesystem::path& path, const char* action) {
  throw DataError(path.string() + ": can not " + action + ": " +
                  std::generic_category().message(errno));
}

void read_at(const std::filesystem::path& path,
             int descriptor,
             uint64_t offset,
             std::span<std::byte> to) {
  while (!to.empty()) {
    const size_t piece = std::min(to.size(), size_t{1} << 30);
    const ssize_t count = ::pread(descriptor, to.data(), piece, static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) reading_failed(path, "read");
    if (count == 0) {
      throw DataError(path.string() + ": became shorter while it was read (offset " +
                      std::to_string(offset) + ")");
    }
    offset += static_cast<uint64_t>(count);
    to = to.subspan(static_cast<size_t>(count));
  }
}

std::string json_text(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      result += "\\u00";
      result += "0123456789abcdef"[c >> 4];
      result += "0123456789abcdef"[c & 15];
    } else {
      result += c;
    }
  }
  return result + "\"";
}

void check_text(std::string_view text) {
  if (find_invalid_utf8(text) != std::string_view::npos) {
    throw std::invalid_argument("safetensors: names and metadata must be UTF-8");
  }
}

/// Bytes by type and shape; throws when they are not those of the tensor.
uint64_t checked_bytes(const TensorBytes& tensor) {
  int64_t bytes = element_bytes(tensor.type);
  for (const int64_t size : tensor.shape) bytes *= size;
  if (static_cast<uint64_t>(bytes) != tensor.bytes.size()) {
    throw std::invalid_argument("safetensors: tensor " + tensor.name + " must have " +
                                std::to_string(bytes) + " bytes by type and shape, has " +
                                std::to_string(tensor.bytes.size()));
  }
  return tensor.bytes.size();
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path) : path_(path) {
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0) reading_failed(path_, "open");
  try {
    struct stat status{};
    if (::fstat(descriptor_, &status) != 0) reading_failed(path_, "examine");
    if (!S_ISREG(status.st_mode)) throw DataError(path_.string() + ": must be a regular file");
    const auto file_bytes = static_cast<uint64_t>(status.st_size);
    uint64_t length = 0;
    if (file_bytes >= sizeof length) {
      read_at(path_, descriptor_, 0, std::as_writable_bytes(std::span(&length, 1)));
    }
    // A length beyond file or cap is refused by the parser; it needs no bytes for that.
    const bool plausible = length <= kMaxHeaderBytes && length <= file_bytes - sizeof length;
    const uint64_t wanted = sizeof length + (plausible ? length : 0);
    std::vector<std::byte> prefix(std::min(file_bytes, wanted));
    read_at(path_, descriptor_, 0, prefix);
    header_ = parse_safetensors_header(prefix, file_bytes, path_.string());
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
  by_name_.resize(header_.tensors.size());
  std::iota(by_name_.begin(), by_name_.end(), size_t{0});
  std::sort(by_name_.begin(), by_name_.end(),
            [&](size_t a, size_t b) { return header_.tensors[a].name < header_.tensors[b].name; });
}

SafetensorsFile::~SafetensorsFile() { ::close(descriptor_); }

const TensorEntry* SafetensorsFile::find(std::string_view name) const {
  const auto place = std::lower_bound(
      by_name_.begin(), by_name_.end(), name,
      [&](size_t index, std::string_view wanted) { return header_.tensors[index].name < wanted; });
  if (place == by_name_.end() || header_.tensors[*place].name != name) return nullptr;
  return &header_.tensors[*place];
}

void SafetensorsFile::read(const TensorEntry& entry, std::span<std::byte> to) const {
  if (to.size() != entry.end - entry.begin) {
    throw std::invalid_argument("safetensors: tensor " + entry.name + " has " +
                                std::to_string(entry.end - entry.begin) + " bytes, place for " +
                                std::to_string(to.size()));
  }
  read_at(path_, descriptor_, header_.data_offset + entry.begin, to);
}

void write_safetensors(const std::vector<TensorBytes>& tensors,
                       const std::map<std::string, std::string>& metadata,
                       const ByteSink& sink) {
  std::string header = "{";
  const auto add = [&](const std::string& key, const std::string& value) {
    check_text(key);
    header += (header.size() == 1 ? "" : ",") + json_text(key) + ":" + value;
  };
  if (!metadata.empty()) {
    std::string pairs;
    for (const auto& [key, value] : metadata) {
      check_text(key);
      check_text(value);
      pairs += (pairs.empty() ? "" : ",") + json_text(key) + ":" + json_text(value);
    }
    add("__metadata__", "{" + pairs + "}");
  }
  std::set<std::string_view> names;
  uint64_t offset = 0;
  for (const TensorBytes& tensor : tensors) {
    if (tensor.name.empty() || tensor.name == "__metadata__" || !names.insert(tensor.name).second) {
      throw std::invalid_argument("safetensors: names must be given, different and not " +
                                  std::string("__metadata__, got ") + tensor.name);
    }
    std::string shape;
    for (const int64_t size : tensor.shape) {
      shape += (shape.empty() ? "" : ",") + std::to_string(size);
    }
    const uint64_t end = offset + checked_bytes(tensor);
    add(tensor.name, "{\"dtype\":" + json_text(to_string(tensor.type)) + ",\"shape\":[" + shape +
                         "],\"data_offsets\":[" + std::to_string(offset) + "," +
                         std::to_string(end) + "]}");
    offset = end;
  }
  header += "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');  // the data starts at a multiple of 8
  const uint64_t length = header.size();
  sink(std::as_bytes(std::span(&length, 1)));
  sink(std::as_bytes(std::span(header)));
  for (const TensorBytes& tensor : tensors) {
    if (!tensor.bytes.empty()) sink(tensor.bytes);
  }
}

}  // namespace elliptical
