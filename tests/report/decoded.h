// SPDX-License-Identifier: MIT
//
// Base64 read back.
#pragma once

#include <cstdint>
#include <string>

namespace elliptical::test {

inline std::string decoded(const std::string& text) {
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  uint32_t group = 0;
  int bits = 0;
  for (const char c : text.substr(0, text.find('='))) {
    group = group << 6 | static_cast<uint32_t>(digits.find(c));
    if ((bits += 6) >= 8) bytes += static_cast<char>(group >> (bits -= 8) & 0xFF);
  }
  return bytes;
}

}  // namespace elliptical::test
