// SPDX-License-Identifier: MIT
#include "elliptical/report/escape.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <nlohmann/json.hpp>

#include "elliptical/base/utf8.h"

namespace elliptical::report {
namespace {

TEST(Escape, NothingOfHtmlIsLeft) {
  EXPECT_EQ(escape_html("</td><img src=x onerror='alert(1)'> & \"q\""),
            "&lt;/td&gt;&lt;img src=x onerror=&#39;alert(1)&#39;&gt; &amp; &quot;q&quot;");
  EXPECT_EQ(escape_html("Z\xC3\xBCrich"), "Z\xC3\xBCrich");
}

TEST(Escape, WhatIsNoCharacterIsReplaced) {
  EXPECT_EQ(escape_html("caf\xE9"), "caf\xEF\xBF\xBD");
  EXPECT_EQ(escape_html(std::string_view("a\0b\x1B[31m", 8)),
            "a\xEF\xBF\xBD"
            "b\xEF\xBF\xBD[31m");
}

RC_GTEST_PROP(Escape, AnyTextIsSafeHtml, (const std::string& text)) {
  const std::string escaped = escape_html(text);
  RC_ASSERT(escaped.find_first_of("<>\"'") == escaped.npos);
  RC_ASSERT(find_invalid_utf8(escaped) == escaped.npos);
}

TEST(JsonInScript, EndsNoScriptAndKeepsItsMeaning) {
  const nlohmann::json value = {{"</script><script>alert(1)</script>", "<!-- & \xE2\x80\xA8"}};
  const std::string text = json_in_script(value);
  EXPECT_EQ(text.find_first_of("<>&"), text.npos);
  EXPECT_EQ(nlohmann::json::parse(text), value);
}

TEST(JsonInScript, ReplacesWhatIsNoUtf8) {
  EXPECT_EQ(json_in_script("caf\xE9"), "\"caf\xEF\xBF\xBD\"");
}

}  // namespace
}  // namespace elliptical::report
