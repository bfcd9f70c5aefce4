// SPDX-License-Identifier: MIT
#include "elliptical/base/utf8.h"

#include <cstdint>
#include <cstring>

namespace elliptical {
namespace {

unsigned byte_at(std::string_view text, size_t i) { return static_cast<unsigned char>(text[i]); }

bool continues(std::string_view text, size_t i) {
  return i < text.size() && (byte_at(text, i) & 0xC0u) == 0x80u;
}

}  // namespace

size_t utf8_length(std::string_view text) {
  if (text.empty()) return 0;
  const unsigned first = byte_at(text, 0);
  if (first < 0x80) return 1;
  if (first < 0xC2) return 0;  // a continuation, or an overlong form
  if (!continues(text, 1)) return 0;
  if (first < 0xE0) return 2;
  const unsigned second = byte_at(text, 1);
  if (!continues(text, 2)) return 0;
  if (first < 0xF0) {
    const bool overlong = first == 0xE0 && second < 0xA0;
    const bool surrogate = first == 0xED && second >= 0xA0;
    return overlong || surrogate ? 0 : 3;
  }
  const bool overlong = first == 0xF0 && second < 0x90;
  const bool beyond = first > 0xF4 || (first == 0xF4 && second >= 0x90);
  return overlong || beyond || !continues(text, 3) ? 0 : 4;
}

char32_t utf8_decode(std::string_view text) {
  const size_t length = utf8_length(text);
  if (length <= 1) return byte_at(text, 0);
  char32_t character = byte_at(text, 0) & (0x7Fu >> length);
  for (size_t i = 1; i < length; ++i) character = character << 6 | (byte_at(text, i) & 0x3Fu);
  return character;
}

void utf8_append(std::string& text, char32_t character) {
  const auto tail = [&](int shift) {
    text += static_cast<char>(0x80u | ((character >> shift) & 0x3Fu));
  };
  if (character < 0x80) {
    text += static_cast<char>(character);
  } else if (character < 0x800) {
    text += static_cast<char>(0xC0u | character >> 6);
    tail(0);
  } else if (character < 0x10000) {
    text += static_cast<char>(0xE0u | character >> 12);
    tail(6);
    tail(0);
  } else {
    text += static_cast<char>(0xF0u | character >> 18);
    tail(12);
    tail(6);
    tail(0);
  }
}

size_t find_invalid_utf8(std::string_view text) {
  size_t i = 0;
  while (i < text.size()) {
    // Most text is ASCII: eight bytes at a time.
    uint64_t bytes;
    if (i + sizeof bytes <= text.size()) {
      std::memcpy(&bytes, text.data() + i, sizeof bytes);
      if ((bytes & 0x8080808080808080u) == 0) {
        i += sizeof bytes;
        continue;
      }
    }
    const size_t length = utf8_length(text.substr(i));
    if (length == 0) return i;
    i += length;
  }
  return std::string_view::npos;
}

}  // namespace elliptical
