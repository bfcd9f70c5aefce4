// SPDX-License-Identifier: MIT
#include "elliptical/base/printable.h"

#include <gtest/gtest.h>

namespace elliptical {
namespace {

TEST(Printable, LeavesTextOfAllLanguagesAlone) {
  for (const std::string text : {"", "plain words, 12 %", "gr\xC3\xBC\xC3\x9F",
                                 "\xE4\xB8\xAD\xE6\x96\x87", "\xF0\x9F\x98\x80 back\\slash"}) {
    EXPECT_EQ(printable(text), text);
  }
}

TEST(Printable, EscapesWhatTerminalsObey) {
  EXPECT_EQ(printable("a\x1b[31mred\x07"), "a\\x1b[31mred\\x07");
  EXPECT_EQ(printable("one\ntwo\tthree\r"), "one\\ntwo\\tthree\\x0d");
  EXPECT_EQ(printable("one\ntwo\x1b", LineEnds::kKeep), "one\ntwo\\x1b");
  EXPECT_EQ(printable(std::string_view("\0\x7f", 2)), "\\x00\\x7f");
  EXPECT_EQ(printable("\xC2\x9B"
                      "31m"),
            "\\x9b31m")
      << "C1: the one-character form of ESC [";
  EXPECT_EQ(printable("\x9B\xFF"
                      "a\xC3"),
            "\\x9b\\xffa\\xc3")
      << "no UTF-8";
  EXPECT_EQ(printable("\xE2\x80\xAEtxt.exe"), "\\u{202e}txt.exe");
  EXPECT_EQ(printable("\xEF\xBB\xBFword\xE2\x80\xA8"), "\\u{feff}word\\u{2028}");
}

TEST(ShellWord, IsQuotedWhereItMust) {
  EXPECT_EQ(shell_word("runs/a-1.5_b"), "runs/a-1.5_b");
  EXPECT_EQ(shell_word("my runs/a"), "'my runs/a'");
  EXPECT_EQ(shell_word("it's; rm"), "'it'\\''s; rm'");
  EXPECT_EQ(shell_word(""), "''");
}

}  // namespace
}  // namespace elliptical
