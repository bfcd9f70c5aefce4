// SPDX-License-Identifier: MIT
//
// Classes of characters as Python has them, because published text data was cut with Python:
// white space (str.split) and word characters (\w of the module re).
#pragma once

#include <cstddef>
#include <string_view>

namespace elliptical::data {

/// Bytes of the white space at the start of `text`, 0 when it starts with something else.
size_t space_length(std::string_view text);

/// Letters and numbers of Unicode (categories L and N) and the underscore.
bool is_word_character(char32_t character);

}  // namespace elliptical::data
