// SPDX-License-Identifier: MIT
//
// UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, nothing above U+10FFFF.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace elliptical {

/// The bytes of the character that `text` starts with (1 to 4), or 0 if it starts with none.
size_t utf8_length(std::string_view text);

/// The character at the start of `text`; utf8_length(text) must not be 0.
char32_t utf8_decode(std::string_view text);

void utf8_append(std::string& text, char32_t character);

/// Offset of the first byte that belongs to no character; npos when all is well.
size_t find_invalid_utf8(std::string_view text);

}  // namespace elliptical
