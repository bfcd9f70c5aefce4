// SPDX-License-Identifier: MIT
//
// Text as tokens: the pieces of a line between white space, and one `<eos>` at the end of each
// line. Blank lines are a lone `<eos>`; a last line without its end counts as a line.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "elliptical/data/text/characters.h"

namespace elliptical::data {

/// More bytes without a space are no word: somebody opened the wrong file.
inline constexpr size_t kMaxWordBytes = 10'000;

/// Throws DataError unless `text` is UTF-8 without NUL, with a space now and then:
///     corpus/train.txt:12: must be UTF-8, is not at offset 345
void check_text(std::string_view text, const std::string& file);

/// A file without the byte-order mark that some editors put in front of UTF-8: it is no part of the
/// first word.
std::string read_text(const std::filesystem::path& file);

/// Calls `on_word(word)` for each piece and `on_line()` at each end of line.
template <class OnWord, class OnLine>
void for_each_token(std::string_view text, OnWord on_word, OnLine on_line) {
  size_t start = 0, i = 0;
  const auto finish = [&] {
    if (i > start) on_word(text.substr(start, i - start));
  };
  while (i < text.size()) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte > ' ' && byte < 0xC2) {  // most bytes: no white space starts with them
      ++i;
      continue;
    }
    const size_t space = byte == ' ' || byte == '\n' ? 1 : space_length(text.substr(i));
    if (space == 0) {
      ++i;
      continue;
    }
    finish();
    if (byte == '\n') on_line();
    i += space;
    start = i;
  }
  finish();
  if (!text.empty() && text.back() != '\n') on_line();
}

}  // namespace elliptical::data
