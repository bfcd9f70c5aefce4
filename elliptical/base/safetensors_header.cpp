// SPDX-License-Identifier: MIT
//
// The JSON header of a safetensors file, by a parser that accepts exactly what such a header may
// hold: an object of tensor entries and one of metadata. Nothing in it nests, so nothing recurses;
// every number is checked while its digits are read, every error has its offset in the file.
#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

#include "elliptical/base/errors.h"
#include "elliptical/base/names.h"
#include "elliptical/base/safetensors.h"
#include "elliptical/base/utf8.h"

namespace elliptical {
namespace {

// What no sane file exceeds; tensors and names have their limits in safetensors.h.
constexpr size_t kMaxMetadata = 10'000;

struct TypeInfo {
  ElementType type;
  const char* name;
  int64_t bytes;
};
constexpr std::array<TypeInfo, 13> kTypes = {{{ElementType::kBool, "BOOL", 1},
                                              {ElementType::kU8, "U8", 1},
                                              {ElementType::kI8, "I8", 1},
                                              {ElementType::kI16, "I16", 2},
                                              {ElementType::kU16, "U16", 2},
                                              {ElementType::kF16, "F16", 2},
                                              {ElementType::kBF16, "BF16", 2},
                                              {ElementType::kI32, "I32", 4},
                                              {ElementType::kU32, "U32", 4},
                                              {ElementType::kF32, "F32", 4},
                                              {ElementType::kI64, "I64", 8},
                                              {ElementType::kU64, "U64", 8},
                                              {ElementType::kF64, "F64", 8}}};

const TypeInfo& info(ElementType type) {
  return *std::find_if(kTypes.begin(), kTypes.end(),
                       [&](const TypeInfo& entry) { return entry.type == type; });
}

/// A piece of foreign text in a message: short, and nothing a terminal could trip over.
std::string excerpt(std::string_view text) {
  std::string result = "\"";
  for (const char c : text.substr(0, 60)) {
    const bool plain = c >= ' ' && c <= '~';
    result += plain ? c : '?';
  }
  return result + (text.size() > 60 ? "...\"" : "\"");
}

class HeaderParser {
 public:
  /// `text` is the header; it starts at byte `start` of the file `name`.
  HeaderParser(std::string_view text, uint64_t start, const std::string& name)
      : text_(text), start_(start), name_(name) {}

  SafetensorsHeader parse() {
    if (text_.empty() || text_[0] != '{') fail("header must start with {", 0);
    SafetensorsHeader header;
    bool has_metadata = false;
    expect('{');
    for (bool first = true; more('}', first); first = false) {
      const size_t offset = position_;
      std::string key = string();
      expect(':');
      if (key == "__metadata__") {
        if (has_metadata) fail("key \"__metadata__\" comes twice", offset);
        has_metadata = true;
        metadata(header.metadata);
        continue;
      }
      if (key.size() > kMaxNameBytes || key.find('\0') != std::string::npos || key.empty()) {
        fail("name of a tensor must have 1 to " + std::to_string(kMaxNameBytes) +
                 " bytes and no NUL, got " + excerpt(key),
             offset);
      }
      if (header.tensors.size() == kMaxTensors) {
        fail("at most " + std::to_string(kMaxTensors) + " tensors are allowed", offset);
      }
      header.tensors.push_back(entry(std::move(key)));
    }
    // Writers fill up with spaces to align the data.
    while (position_ < text_.size() && text_[position_] == ' ') ++position_;
    if (position_ != text_.size()) fail("text after the header's end");
    return header;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { fail(what, position_); }
  [[noreturn]] void fail(const std::string& what, size_t position) const {
    throw DataError(name_ + ": " + what + " (offset " + std::to_string(start_ + position) + ")");
  }

  void skip_space() {
    while (position_ < text_.size() && std::strchr(" \t\r\n", text_[position_]) != nullptr &&
           text_[position_] != '\0') {
      ++position_;
    }
  }

  bool accept(char c) {
    skip_space();
    if (position_ >= text_.size() || text_[position_] != c) return false;
    ++position_;
    return true;
  }

  void expect(char c) {
    if (!accept(c)) fail(std::string("expected ") + c);
  }

  /// True when another member of an object or array follows; reads what separates or ends.
  bool more(char end, bool first) {
    if (accept(end)) return false;
    if (!first) {
      expect(',');
      skip_space();
      if (position_ < text_.size() && text_[position_] == end) fail("comma before the end");
    }
    return true;
  }

  unsigned hex4() {
    unsigned value = 0;
    const char* from = text_.data() + position_;
    const char* to = from + std::min<size_t>(4, text_.size() - position_);
    const auto result = std::from_chars(from, to, value, 16);
    if (result.ec != std::errc() || result.ptr != from + 4) fail("\\u must have 4 hex digits");
    position_ += 4;
    return value;
  }

  void escape(std::string& out) {
    constexpr std::string_view kNames = "\"\\/bfnrt", kValues = "\"\\/\b\f\n\r\t";
    const char c = position_ < text_.size() ? text_[position_++] : '\0';
    const size_t index = kNames.find(c);
    if (index != std::string_view::npos) {
      out += kValues[index];
      return;
    }
    if (c != 'u') fail("unknown escape", position_ - 1);
    char32_t character = hex4();
    if (character >= 0xD800 && character < 0xDC00) {
      if (text_.substr(position_, 2) != "\\u") fail("half of a surrogate pair");
      position_ += 2;
      const char32_t low = hex4();
      if (low < 0xDC00 || low > 0xDFFF) fail("half of a surrogate pair");
      character = 0x10000 + ((character - 0xD800) << 10) + (low - 0xDC00);
    } else if (character >= 0xDC00 && character < 0xE000) {
      fail("half of a surrogate pair");
    }
    utf8_append(out, character);
  }

  std::string string() {
    expect('"');
    std::string out;
    while (true) {
      const size_t plain = position_;
      while (position_ < text_.size() && text_[position_] != '"' && text_[position_] != '\\' &&
             static_cast<unsigned char>(text_[position_]) >= 0x20) {
        ++position_;
      }
      out.append(text_.substr(plain, position_ - plain));
      if (position_ >= text_.size()) fail("text without end");
      const char c = text_[position_];
      if (c == '"') break;
      if (c != '\\') fail("control character in text");
      ++position_;
      escape(out);
    }
    ++position_;
    return out;
  }

  /// A whole number from 0 to 2^63 - 1, without sign, fraction or exponent.
  uint64_t number() {
    skip_space();
    const size_t offset = position_;
    uint64_t value = 0;
    bool fits = true;
    while (position_ < text_.size() && text_[position_] >= '0' && text_[position_] <= '9') {
      fits = fits && !__builtin_mul_overflow(value, uint64_t{10}, &value) &&
             !__builtin_add_overflow(value, static_cast<uint64_t>(text_[position_] - '0'), &value);
      ++position_;
    }
    const bool leading_zero = position_ > offset + 1 && text_[offset] == '0';
    const bool goes_on = position_ < text_.size() &&
                         std::string_view(".eE+-").find(text_[position_]) != std::string_view::npos;
    if (position_ == offset || leading_zero || goes_on) fail("must be a whole number >= 0", offset);
    if (!fits || value > static_cast<uint64_t>(INT64_MAX)) fail("number too large", offset);
    return value;
  }

  void metadata(std::map<std::string, std::string>& to) {
    expect('{');
    for (bool first = true; more('}', first); first = false) {
      const size_t offset = position_;
      if (to.size() == kMaxMetadata) {
        fail("at most " + std::to_string(kMaxMetadata) + " entries of metadata are allowed");
      }
      std::string key = string();
      expect(':');
      if (!to.emplace(key, string()).second) fail("key " + excerpt(key) + " comes twice", offset);
    }
  }

  ElementType element_type() {
    skip_space();
    const size_t offset = position_;
    const std::string name = string();
    for (const TypeInfo& candidate : kTypes) {
      if (name == candidate.name) return candidate.type;
    }
    std::vector<std::string> known;
    for (const TypeInfo& candidate : kTypes) known.emplace_back(candidate.name);
    fail("dtype: unknown " + excerpt(name) + ", known: " + join(known), offset);
  }

  std::vector<int64_t> shape() {
    std::vector<int64_t> sizes;
    expect('[');
    for (bool first = true; more(']', first); first = false) {
      if (sizes.size() == kMaxDimensions) {
        fail("at most " + std::to_string(kMaxDimensions) + " dimensions are allowed");
      }
      sizes.push_back(static_cast<int64_t>(number()));
    }
    return sizes;
  }

  TensorEntry entry(std::string name) {
    const size_t offset = position_;
    TensorEntry tensor;
    tensor.name = std::move(name);
    bool has_type = false, has_shape = false, has_offsets = false;
    const auto once = [&](bool& seen, const char* field) {
      if (seen) fail(std::string(field) + " comes twice in tensor " + excerpt(tensor.name));
      seen = true;
    };
    expect('{');
    for (bool first = true; more('}', first); first = false) {
      const size_t field_offset = position_;
      const std::string field = string();
      expect(':');
      if (field == "dtype") {
        once(has_type, "dtype");
        tensor.type = element_type();
      } else if (field == "shape") {
        once(has_shape, "shape");
        tensor.shape = shape();
      } else if (field == "data_offsets") {
        once(has_offsets, "data_offsets");
        expect('[');
        tensor.begin = number();
        expect(',');
        tensor.end = number();
        expect(']');
      } else {
        fail("unknown field " + excerpt(field) + " of tensor " + excerpt(tensor.name),
             field_offset);
      }
    }
    if (!has_type || !has_shape || !has_offsets) {
      fail("tensor " + excerpt(tensor.name) + " must have dtype, shape and data_offsets", offset);
    }
    check_size(tensor, offset);
    return tensor;
  }

  void check_size(const TensorEntry& tensor, size_t offset) const {
    if (tensor.begin > tensor.end) {
      fail("data_offsets of tensor " + excerpt(tensor.name) + " must not decrease, got [" +
               std::to_string(tensor.begin) + ", " + std::to_string(tensor.end) + "]",
           offset);
    }
    // Zeros are left out of the check of overflow: strides of an empty tensor are products, too.
    int64_t bytes = element_bytes(tensor.type);
    bool empty = false;
    for (const int64_t size : tensor.shape) {
      empty = empty || size == 0;
      if (size != 0 && __builtin_mul_overflow(bytes, size, &bytes)) {
        fail("shape of tensor " + excerpt(tensor.name) + " is too large", offset);
      }
    }
    const uint64_t expected = empty ? 0 : static_cast<uint64_t>(bytes);
    if (tensor.end - tensor.begin != expected) {
      fail("tensor " + excerpt(tensor.name) + " must have " + std::to_string(expected) +
               " bytes by dtype and shape, has " + std::to_string(tensor.end - tensor.begin),
           offset);
    }
  }

  std::string_view text_;
  uint64_t start_;
  const std::string& name_;
  size_t position_ = 0;
};

[[noreturn]] void fail_tensor(const std::string& name,
                              const TensorEntry& tensor,
                              const char* what) {
  throw DataError(name + ": tensor " + excerpt(tensor.name) + " " + what + " (offset " +
                  std::to_string(tensor.begin) + " of the data)");
}

/// Sorts by place; the bytes must be covered once, without gaps.
void check_coverage(std::vector<TensorEntry>& tensors,
                    uint64_t data_bytes,
                    const std::string& name) {
  std::sort(tensors.begin(), tensors.end(), [](const TensorEntry& a, const TensorEntry& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  uint64_t covered = 0;
  for (const TensorEntry& tensor : tensors) {
    if (tensor.begin < covered) fail_tensor(name, tensor, "overlaps another");
    if (tensor.begin > covered) fail_tensor(name, tensor, "leaves a gap before it");
    if (tensor.end > data_bytes) fail_tensor(name, tensor, "ends beyond the file");
    covered = tensor.end;
  }
  if (covered != data_bytes) {
    throw DataError(name + ": tensors must cover all " + std::to_string(data_bytes) +
                    " bytes of data, cover " + std::to_string(covered));
  }
}

void check_names(const std::vector<TensorEntry>& tensors, const std::string& name) {
  std::vector<std::string_view> names;
  names.reserve(tensors.size());
  for (const TensorEntry& tensor : tensors) names.emplace_back(tensor.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) throw DataError(name + ": tensor " + excerpt(*twice) + " comes twice");
}

}  // namespace

std::string_view to_string(ElementType type) { return info(type).name; }
int64_t element_bytes(ElementType type) { return info(type).bytes; }

int64_t TensorEntry::num_elements() const {
  return static_cast<int64_t>(end - begin) / element_bytes(type);
}

SafetensorsHeader parse_safetensors_header(std::span<const std::byte> prefix,
                                           uint64_t file_bytes,
                                           const std::string& name) {
  uint64_t length = 0;
  if (file_bytes < sizeof length || prefix.size() < sizeof length) {
    throw DataError(name + ": must start with 8 bytes of header length, has " +
                    std::to_string(file_bytes) + " bytes (offset 0)");
  }
  std::memcpy(&length, prefix.data(), sizeof length);
  if (length > kMaxHeaderBytes) {
    throw DataError(name + ": header must have at most " + std::to_string(kMaxHeaderBytes) +
                    " bytes, claims " + std::to_string(length) + " (offset 0)");
  }
  if (length > file_bytes - sizeof length || length > prefix.size() - sizeof length) {
    throw DataError(name + ": header claims " + std::to_string(length) +
                    " bytes, more than the file has (offset 0)");
  }
  const std::string_view text(reinterpret_cast<const char*>(prefix.data()) + sizeof length, length);
  const size_t invalid = find_invalid_utf8(text);
  if (invalid != std::string_view::npos) {
    throw DataError(name + ": header must be UTF-8 (offset " +
                    std::to_string(sizeof length + invalid) + ")");
  }
  SafetensorsHeader header = HeaderParser(text, sizeof length, name).parse();
  header.data_offset = sizeof length + length;
  check_names(header.tensors, name);
  check_coverage(header.tensors, file_bytes - header.data_offset, name);
  return header;
}

}  // namespace elliptical
