// SPDX-License-Identifier: MIT
#include "tests/fuzz/damage.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "elliptical/base/errors.h"
#include "elliptical/base/safetensors.h"

namespace elliptical::test {
namespace {

constexpr size_t kMaxDataBytes = 1 << 15;

template <class T, size_t n>
const T& one_of(const std::array<T, n>& choices, RandomStream& random) {
  return choices[random.below(n)];
}

/// Where a value of JSON stands.
struct Span {
  size_t begin = 0, end = 0;
  bool is_member = false;  ///< begins with its key
};

size_t end_of_text(std::string_view text, size_t begin) {
  for (size_t i = begin + 1; i < text.size(); ++i) {
    if (text[i] == '\\')
      ++i;
    else if (text[i] == '"')
      return i + 1;
  }
  return text.size();
}

/// All values and members, also those of JSON that is damaged already.
std::vector<Span> spans(std::string_view text) {
  std::vector<Span> found;
  std::vector<size_t> open, keys;  // starts of what is not closed, and of keys that wait for values
  constexpr size_t kNone = std::string_view::npos;
  const auto add = [&](size_t begin, size_t end) {
    found.push_back({begin, end, false});
    if (!keys.empty() && keys.back() != kNone) {
      found.push_back({keys.back(), end, true});
      keys.back() = kNone;
    }
  };
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c == '{' || c == '[') {
      open.push_back(i++);
      keys.push_back(kNone);
    } else if (c == '}' || c == ']') {
      ++i;
      if (open.empty()) continue;
      const size_t begin = open.back();
      open.pop_back();
      keys.pop_back();
      add(begin, i);
    } else if (c == '"') {
      const size_t begin = i;
      i = end_of_text(text, i);
      const size_t next = text.find_first_not_of(" \t\r\n", i);
      const bool is_key = next != kNone && text[next] == ':' && !keys.empty();
      if (is_key)
        keys.back() = begin;
      else
        add(begin, i);
    } else if (std::strchr(" \t\r\n,:", c) != nullptr && c != '\0') {
      ++i;
    } else {
      const size_t begin = i;
      while (i < text.size() && std::string_view(" \t\r\n,:{}[]\"").find(text[i]) == kNone) ++i;
      add(begin, i);
    }
  }
  return found;
}

std::string brackets(RandomStream& random) {
  constexpr std::array<size_t, 7> kDepths = {1, 7, 8, 16, 17, 3000, 60'000};
  const size_t depth = one_of(kDepths, random);
  if (random.below(2) == 0) return std::string(depth, '[') + std::string(depth, ']');
  std::string text;
  for (size_t i = 0; i < depth; ++i) text += "{\"a\":";
  return text + "0" + std::string(depth, '}');
}

std::string other_value(RandomStream& random) {
  constexpr std::array<const char*, 34> kValues = {"null",
                                                   "true",
                                                   "false",
                                                   "0",
                                                   "-0",
                                                   "1",
                                                   "-1",
                                                   "2",
                                                   "4",
                                                   "0.5",
                                                   "1.0",
                                                   "1e2",
                                                   "1e308",
                                                   "-1e308",
                                                   "1e309",
                                                   "5e-324",
                                                   "2147483648",
                                                   "9007199254740993",
                                                   "9223372036854775807",
                                                   "9223372036854775808",
                                                   "-9223372036854775808",
                                                   "-9223372036854775809",
                                                   "18446744073709551615",
                                                   "18446744073709551616",
                                                   "\"\"",
                                                   "\"nan\"",
                                                   "\"inf\"",
                                                   "\"4\"",
                                                   "\"\\u0000\"",
                                                   "\"\\ud800\"",
                                                   "\"\\u001b[2J\"",
                                                   "\"../..\"",
                                                   "[]",
                                                   "{}"};
  const uint64_t choice = random.below(kValues.size() + 3);
  if (choice < kValues.size()) return kValues[choice];
  if (choice == kValues.size()) {
    std::string text = "\"";
    return text.append(random.below(5000), 'x').append("\"");
  }
  return brackets(random);
}

/// JSON inside of a text, as metadata of snapshots have it.
std::string damaged_inside(std::string_view text, RandomStream& random) {
  const nlohmann::json value = nlohmann::json::parse(text, nullptr, false);
  const bool has_json = value.is_string() && value.get_ref<const std::string&>().size() > 1 &&
                        std::strchr("[{", value.get_ref<const std::string&>()[0]) != nullptr;
  if (!has_json) return other_value(random);
  const std::string inner = damage_json(value.get_ref<const std::string&>(), random);
  return nlohmann::json(inner).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return lines;
}

struct OwnedTensor {
  TensorEntry entry;
  std::string bytes;
};

void fit_bytes(OwnedTensor& tensor, RandomStream& random) {
  uint64_t size = static_cast<uint64_t>(element_bytes(tensor.entry.type));
  for (int64_t& dimension : tensor.entry.shape) {
    if (dimension > 0 && size > kMaxDataBytes / static_cast<uint64_t>(dimension)) dimension = 1;
    size *= static_cast<uint64_t>(dimension);
  }
  const size_t before = tensor.bytes.size();
  tensor.bytes.resize(size);
  for (size_t i = before; i < size && before > 0; ++i) tensor.bytes[i] = tensor.bytes[i % before];
  for (size_t i = before; i < size && before == 0; ++i) {
    tensor.bytes[i] = static_cast<char>(random.next());
  }
}

void damage_values(OwnedTensor& tensor, RandomStream& random) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr std::array<float, 9> kNumbers = {
      0, -1, 2, 1e30F, 1e-40F, kInf, -kInf, std::numeric_limits<float>::quiet_NaN(), 3.4e38F};
  const auto bits = std::bit_cast<std::array<char, 4>>(one_of(kNumbers, random));
  const bool is_all = random.below(4) == 0;
  const size_t num = tensor.bytes.size() / 4, chosen = num == 0 ? 0 : random.below(num);
  for (size_t i = is_all ? 0 : chosen; i < (is_all ? num : std::min(num, chosen + 1)); ++i) {
    std::copy(bits.begin(), bits.end(), tensor.bytes.begin() + static_cast<int64_t>(4 * i));
  }
}

void damage_entry(OwnedTensor& tensor, RandomStream& random) {
  std::vector<int64_t>& shape = tensor.entry.shape;
  switch (random.below(6)) {
    case 0:
      if (!shape.empty()) {
        constexpr std::array<int64_t, 9> kSizes = {0, 1, 2, 3, 4, 5, 7, 33, 1025};
        shape[random.below(shape.size())] = one_of(kSizes, random);
      }
      break;
    case 1:
      if (shape.size() > 1) std::swap(shape.front(), shape.back());
      break;
    case 2:
      shape.insert(shape.begin(), 1);
      break;
    case 3:
      if (!shape.empty()) shape.pop_back();
      break;
    case 4: {
      constexpr std::array<ElementType, 5> kTypes = {ElementType::kF64, ElementType::kI64,
                                                     ElementType::kU8, ElementType::kF16,
                                                     ElementType::kF32};
      tensor.entry.type = one_of(kTypes, random);
      break;
    }
    default:
      damage_values(tensor, random);
  }
  fit_bytes(tensor, random);
}

std::string written(const std::vector<OwnedTensor>& tensors,
                    const std::map<std::string, std::string>& metadata) {
  std::vector<TensorBytes> entries;
  for (const OwnedTensor& tensor : tensors) {
    entries.push_back({tensor.entry.name, tensor.entry.type, tensor.entry.shape,
                       std::as_bytes(std::span(tensor.bytes))});
  }
  std::string file;
  write_safetensors(entries, metadata, [&](std::span<const std::byte> piece) {
    file.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  });
  return file;
}

std::string damaged_header(std::string_view bytes, RandomStream& random) {
  uint64_t length = 0;
  if (bytes.size() < sizeof length) return damage_bytes(bytes, random);
  std::memcpy(&length, bytes.data(), sizeof length);
  length = std::min<uint64_t>(length, bytes.size() - sizeof length);
  const std::string header = damage_json(bytes.substr(sizeof length, length), random),
                    data(bytes.substr(sizeof length + length));
  length = random.below(8) == 0 ? random.next() >> random.below(64) : header.size();
  std::string file(sizeof length, '\0');
  std::memcpy(file.data(), &length, sizeof length);
  return file + header + data;
}

}  // namespace

std::string damage_bytes(std::string_view bytes, RandomStream& random) {
  std::string result(bytes);
  const size_t place = random.below(result.size() + 1);
  const size_t length = random.below(std::min<size_t>(result.size() - place, 16) + 1);
  switch (random.below(5)) {
    case 0:
      result.resize(place);
      break;
    case 1:
      result.erase(place, length);
      break;
    case 2:
      result.insert(place, std::string(result, place, length));
      break;
    case 3:
      result.insert(place, std::string(random.below(2000), static_cast<char>(random.next())));
      break;
    default:
      if (place < result.size()) result[place] = static_cast<char>(random.next());
  }
  return result;
}

std::string damage_json(std::string_view text, RandomStream& random) {
  const std::vector<Span> found = spans(text);
  if (found.empty() || random.below(10) == 0) return damage_bytes(text, random);
  const Span chosen = found[random.below(found.size())];
  const std::string before(text.substr(0, chosen.begin)), after(text.substr(chosen.end));
  const std::string value(text.substr(chosen.begin, chosen.end - chosen.begin));
  if (chosen.is_member) {
    switch (random.below(4)) {
      case 0:
        return before + value + "," + value + after;  // twice
      case 1:
        return before + "\"x\":" + other_value(random) + "," + value + after;
      case 2:
        return before + "\"x" + value.substr(1) + after;  // another name
      default: {
        const size_t comma = after.find_first_not_of(" \t\r\n");  // gone
        const bool has_next = comma != std::string::npos && after[comma] == ',';
        return before + (has_next ? after.substr(comma + 1) : after);
      }
    }
  }
  switch (random.below(8)) {
    case 0:
      return before + "[" + value + "]" + after;
    case 1:
      return before + value + "," + value + after;
    case 2:
      return before + value;
    case 3: {
      const Span other = found[random.below(found.size())];
      return before + std::string(text.substr(other.begin, other.end - other.begin)) + after;
    }
    case 4:
    case 5:
      return before + damaged_inside(value, random) + after;
    default:
      return before + other_value(random) + after;
  }
}

std::string damage_lines(std::string_view text, RandomStream& random) {
  std::vector<std::string_view> lines = lines_of(text);
  if (lines.empty() || random.below(2) == 0) return damage_json(text, random);
  const size_t chosen = random.below(lines.size());
  const std::string_view line = lines[chosen];
  const auto place = lines.begin() + static_cast<int64_t>(chosen);
  switch (random.below(5)) {
    case 0:
      lines.insert(place, line);
      break;
    case 1:
      lines.erase(place);
      break;
    case 2:
      lines[chosen] = line.substr(0, random.below(line.size() + 1));
      break;
    case 3:
      std::swap(lines[chosen], lines[random.below(lines.size())]);
      break;
    default:
      lines.insert(place, "\n");
  }
  std::string result;
  for (const std::string_view each : lines) result += each;
  return result;
}

std::string damage_tensors(std::string_view bytes, RandomStream& random) {
  SafetensorsHeader header;
  try {
    header = parse_safetensors_header(std::as_bytes(std::span(bytes)), bytes.size(), "f");
  } catch (const DataError&) {
    return damaged_header(bytes, random);
  }
  if (header.tensors.empty() || random.below(4) == 0) return damaged_header(bytes, random);
  std::vector<OwnedTensor> tensors;
  for (const TensorEntry& entry : header.tensors) {
    const auto data = bytes.substr(header.data_offset + entry.begin, entry.end - entry.begin);
    tensors.push_back({entry, std::string(data)});
  }
  const size_t chosen = random.below(tensors.size());
  if (!header.metadata.empty() && random.below(4) == 0) {
    auto entry = header.metadata.begin();
    std::advance(entry, random.below(header.metadata.size()));
    entry->second = damage_json(entry->second, random);
  } else if (random.below(8) == 0) {
    tensors.erase(tensors.begin() + static_cast<int64_t>(chosen));
  } else if (random.below(8) == 0) {
    std::swap(tensors[chosen].entry.name, tensors[random.below(tensors.size())].entry.name);
  } else {
    // Half of the time the same to all, so that tensors may still fit each other.
    RandomStream again = random;
    for (size_t i = 0; i < tensors.size(); ++i) {
      RandomStream same = again;
      if (i == chosen || random.below(2) == 0) damage_entry(tensors[i], same);
    }
  }
  try {
    return written(tensors, header.metadata);
  } catch (const std::invalid_argument&) {  // metadata that are no UTF-8 can not be written
    return damaged_header(bytes, random);
  }
}

}  // namespace elliptical::test
