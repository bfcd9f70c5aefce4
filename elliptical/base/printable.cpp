// SPDX-License-Identifier: MIT
#include "elliptical/base/printable.h"

#include <cstdint>
#include <cstdio>

#include "elliptical/base/utf8.h"

namespace elliptical {
namespace {

std::string escaped(const char* format, uint32_t code) {
  char text[16];
  std::snprintf(text, sizeof text, format, code);
  return text;
}

bool is_control(char32_t c) { return c < 0x20 || (c >= 0x7F && c < 0xA0); }

/// Line and paragraph separators, marks and overrides of direction, and the byte-order mark.
bool is_hidden(char32_t c) {
  return c == 0x061C || c == 0x200E || c == 0x200F || (c >= 0x2028 && c <= 0x202E) ||
         (c >= 0x2066 && c <= 0x2069) || c == 0xFEFF;
}

}  // namespace

std::string printable(std::string_view text, LineEnds line_ends) {
  std::string result;
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    if (length == 0) {
      result += escaped("\\x%02x", static_cast<unsigned char>(text.front()));
      text.remove_prefix(1);
      continue;
    }
    const char32_t c = utf8_decode(text);
    if (c == '\n') {
      result += line_ends == LineEnds::kKeep ? "\n" : "\\n";
    } else if (c == '\t') {
      result += "\\t";
    } else if (is_control(c)) {
      result += escaped("\\x%02x", c);
    } else if (is_hidden(c)) {
      result += escaped("\\u{%04x}", c);
    } else {
      result.append(text.substr(0, length));
    }
    text.remove_prefix(length);
  }
  return result;
}

std::string shell_word(std::string_view text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=+:,@%";
  if (!text.empty() && text.find_first_not_of(kPlain) == text.npos) return std::string(text);
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

}  // namespace elliptical
