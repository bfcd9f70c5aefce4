// SPDX-License-Identifier: MIT
//
// What the door for foreign JSON lets in. Fault ID: S1.
#include "elliptical/base/json.h"

#include <gtest/gtest.h>

#include <ctime>

#include "elliptical/base/errors.h"
#include "tests/support/error_message.h"

namespace elliptical {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

std::string refusal(const std::string& text, const JsonLimits& limits = {}) {
  const std::string message =
      test::error_message<DataError>([&] { parse_json<json>(text, "f", limits); });
  EXPECT_EQ(test::error_message<DataError>([&] { parse_json<ordered_json>(text, "f", limits); }),
            message);
  return message;
}

TEST(Json, IsReadAsTheLibraryReadsIt) {
  const std::string text =
      R"( {"z": [1, -2, 0.5, true, null, "\u00e9"], "a": {"": {}, "b": []}, "n": 18446744073709551615} )";
  EXPECT_EQ(parse_json<json>(text, "f"), json::parse(text));
  EXPECT_EQ(parse_json<ordered_json>(text, "f").dump(), ordered_json::parse(text).dump());
  EXPECT_EQ(parse_json<json>("3", "f"), json(3));
}

TEST(Json, S1WhatIsNoneSaysWhere) {
  EXPECT_EQ(refusal(""), "f: must be JSON, is not (offset 1)");
  EXPECT_EQ(refusal("{\"a\": 1"), "f: must be JSON, is not (offset 8)");
  EXPECT_EQ(refusal("[1] 2"), "f: must be JSON, is not (offset 5)");
  EXPECT_EQ(refusal("[1e999]"), "f: must be JSON, is not (offset 6)");
  EXPECT_EQ(refusal("[\"\xff\"]"), "f: must be JSON, is not (offset 3)");
}

TEST(Json, S1HasBounds) {
  const JsonLimits limits = {.max_bytes = 20, .max_depth = 2, .max_values = 5};
  EXPECT_EQ(refusal(std::string(21, ' '), limits), "f: must have at most 20 bytes, has 21");
  EXPECT_NO_THROW(parse_json<json>("[[0], {}, 1]", "f", limits));
  EXPECT_EQ(refusal("[[0], {}, 1, 2]", limits), "f: must hold at most 5 values, holds more");
  EXPECT_EQ(refusal("[[[", limits), "f: must nest at most 2 deep, nests deeper");
  EXPECT_EQ(refusal("{\"a\":{\"a\":{}}}", limits), "f: must nest at most 2 deep, nests deeper");
  EXPECT_EQ(refusal(std::string(1'000'000, '[')), "f: must nest at most 16 deep, nests deeper");
}

TEST(Json, S1NoKeyComesTwice) {
  EXPECT_EQ(refusal("{\"a\": 1, \"b\": {\"a\": 1}, \"a\": 2}"),
            "f: key \"a\" must stand there once, comes twice");
  EXPECT_EQ(refusal("{\"\\u001b[2J\": 1, \"\\u001b[2J\": 2}"),
            "f: key \"\\x1b[2J\" must stand there once, comes twice");
}

// Ordered objects of the library look at every key for each new one.
TEST(Json, S1ManyKeysTakeNoLonger) {
  std::string text = "{\"x\": 0";
  for (int i = 1; i < 99'000; ++i) text += ", \"" + std::to_string(i) + "\": 0";
  const auto start = std::clock();
  EXPECT_EQ(parse_json<ordered_json>(text + "}", "f").size(), 99'000);
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  EXPECT_LT(seconds, 5);  // 0.1 on its own; by pairs of keys some tens
}

TEST(JsonFields, SayWhatIsWrongWithWhich) {
  const auto value = parse_json<ordered_json>(
      R"({"text": "t", "number": 3, "flag": true, "inner": {"number": "3"}})", "f");
  const JsonFields fields(value, "f");
  EXPECT_EQ(fields.text("text"), "t");
  EXPECT_EQ(fields.whole_number("number"), 3);
  EXPECT_TRUE(fields.yes_or_no("flag"));
  EXPECT_EQ(fields.names(), (std::vector<std::string>{"text", "number", "flag", "inner"}));
  const auto message = [](const auto& action) { return test::error_message<DataError>(action); };
  EXPECT_EQ(message([&] { fields.text("flag"); }), "f: flag must be text, is true or false");
  EXPECT_EQ(message([&] { fields.yes_or_no("none"); }),
            "f: none must be true or false, is missing");
  EXPECT_EQ(message([&] { fields.object("inner").whole_number("number"); }),
            "f: inner.number must be a whole number, is text");
  EXPECT_EQ(message([&] { fields.object("text"); }), "f: text must be a JSON object, is text");
  EXPECT_EQ(message([] { JsonFields(ordered_json(1), "f"); }),
            "f: must be a JSON object, is a whole number");
}

}  // namespace
}  // namespace elliptical
