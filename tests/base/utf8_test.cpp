// SPDX-License-Identifier: MIT
#include "elliptical/base/utf8.h"

#include <gtest/gtest.h>

namespace elliptical {
namespace {

TEST(Utf8, EveryCharacterGoesThereAndBack) {
  for (char32_t c = 0; c <= 0x10FFFF; c += c < 0x1000 ? 1 : 61) {
    if (c >= 0xD800 && c <= 0xDFFF) continue;
    std::string text;
    utf8_append(text, c);
    ASSERT_EQ(utf8_length(text), text.size()) << static_cast<uint32_t>(c);
    ASSERT_EQ(utf8_decode(text), c);
    ASSERT_EQ(find_invalid_utf8(text), std::string::npos);
  }
}

TEST(Utf8, RefusesWhatTheStandardRefuses) {
  for (const char* text :
       {"\x80", "\xBF", "\xC0\x80", "\xC1\xBF", "\xC2", "\xC2\x20", "\xE0\x9F\xBF", "\xED\xA0\x80",
        "\xED\xBF\xBF", "\xE2\x82", "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80",
        "\xF0\x9F\x98", "\xFF"}) {
    EXPECT_EQ(utf8_length(text), 0u);
    EXPECT_EQ(find_invalid_utf8(std::string("0123456789") + text), 10u);
  }
  EXPECT_EQ(utf8_length(""), 0u);
}

}  // namespace
}  // namespace elliptical
