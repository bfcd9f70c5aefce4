// SPDX-License-Identifier: MIT
#include "elliptical/base/names.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "elliptical/base/errors.h"
#include "tests/support/error_message.h"

namespace elliptical {
namespace {

TEST(EditDistance, CountsInsertionsDeletionsReplacements) {
  EXPECT_EQ(edit_distance("", ""), 0);
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("bench", "bench"), 0);
  EXPECT_EQ(edit_distance("bnch", "bench"), 1);
  EXPECT_EQ(edit_distance("bnech", "bench"), 2);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
}

RC_GTEST_PROP(EditDistance,
              IsAMetric,
              (const std::string& a, const std::string& b, const std::string& c)) {
  RC_ASSERT(edit_distance(a, b) == edit_distance(b, a));
  RC_ASSERT((edit_distance(a, b) == 0) == (a == b));
  RC_ASSERT(edit_distance(a, c) <= edit_distance(a, b) + edit_distance(b, c));
}

TEST(NameList, NamesEachOnce) {
  using List = std::vector<std::string>;
  EXPECT_EQ(name_list("a,b c", "--x"), List({"a", "b c"}));
  EXPECT_EQ(test::error_message<UsageError>([] { name_list("a,", "--x"); }),
            "--x: must be a list like a,b, got \"a,\"");
  EXPECT_EQ(test::error_message<UsageError>([] { name_list("a,b,a", "--x"); }),
            "--x: must name each once, got \"a\" twice");
}

TEST(UnknownName, NamesTheNearest) {
  EXPECT_EQ(unknown_name("elipse", {"circle", "ellipse"}),
            "unknown \"elipse\", did you mean \"ellipse\"?");
}

TEST(UnknownName, ListsAllWhenNoneIsNear) {
  EXPECT_EQ(unknown_name("square", {"circle", "ellipse"}),
            "unknown \"square\", known: circle, ellipse");
}

TEST(Split, KeepsEmptyParts) {
  EXPECT_EQ(split("a,b"), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(split("a,,b,"), (std::vector<std::string>{"a", "", "b", ""}));
  EXPECT_EQ(split(""), (std::vector<std::string>{""}));
  EXPECT_EQ(split("a b", ' '), (std::vector<std::string>{"a", "b"}));
}

}  // namespace
}  // namespace elliptical
