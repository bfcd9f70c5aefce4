// SPDX-License-Identifier: MIT
//
// What lines say, for assertions that show all of them when they fail.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace elliptical::test {

using Lines = std::vector<std::string>;

/// Whether a line starts with the first of `parts` and contains the others.
inline testing::AssertionResult has_line(const Lines& lines, const Lines& parts) {
  const auto matches = [&](const std::string& line) {
    return line.starts_with(parts.front()) &&
           std::all_of(parts.begin(), parts.end(), [&](const std::string& part) {
             return line.find(part) != std::string::npos;
           });
  };
  const bool found = std::any_of(lines.begin(), lines.end(), matches);
  auto result = found ? testing::AssertionSuccess() : testing::AssertionFailure();
  for (const std::string& part : parts) result << "\"" << part << "\" ";
  result << (found ? "in" : "not in");
  for (const std::string& line : lines) result << "\n  " << line;
  return result;
}

/// Whether one of `lines` has `part` in it.
inline bool any_contains(const Lines& lines, const std::string& part) {
  return std::any_of(lines.begin(), lines.end(),
                     [&](const std::string& line) { return line.find(part) != std::string::npos; });
}

}  // namespace elliptical::test
