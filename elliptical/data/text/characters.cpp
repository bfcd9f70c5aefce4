// SPDX-License-Identifier: MIT
#include "elliptical/data/text/characters.h"

#include <algorithm>

#include "elliptical/base/utf8.h"
#include "elliptical/data/text/word_characters_impl.h"

namespace elliptical::data {

size_t space_length(std::string_view text) {
  if (text.empty()) return 0;
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) {
    const bool space =
        first == ' ' || (first >= 0x09 && first <= 0x0D) || (first >= 0x1C && first <= 0x1F);
    return space ? 1 : 0;
  }
  // U+0085, U+00A0 start with C2; U+1680 with E1; U+2000 to U+205F with E2; U+3000 with E3.
  if (first != 0xC2 && (first < 0xE1 || first > 0xE3)) return 0;
  const size_t length = utf8_length(text);
  if (length == 0) return 0;
  const char32_t c = utf8_decode(text);
  const bool space = c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) ||
                     c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
  return space ? length : 0;
}

bool is_word_character(char32_t character) {
  if (character < 0x80) {
    const char32_t lower = character | 0x20;
    return (lower >= 'a' && lower <= 'z') || (character >= '0' && character <= '9') ||
           character == '_';
  }
  const auto range = std::partition_point(kWordCharacters.begin(), kWordCharacters.end(),
                                          [&](const auto& r) { return r[1] < character; });
  return range != kWordCharacters.end() && (*range)[0] <= character;
}

}  // namespace elliptical::data
