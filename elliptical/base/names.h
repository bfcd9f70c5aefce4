// SPDX-License-Identifier: MIT
//
// What a user probably meant. Every place that looks up a name in a table says so when it fails.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace elliptical {

/// Insertions, deletions and replacements of a character that turn `a` into `b`.
int edit_distance(std::string_view a, std::string_view b);

/// The name that was probably meant: at least half of it is right. Null when there is none.
const std::string* nearest_name(std::string_view name, const std::vector<std::string>& known);

/// `unknown "elipse", did you mean "ellipse"?`; without a near name it lists them all.
std::string unknown_name(std::string_view name, const std::vector<std::string>& known);

/// The parts between commas, empty ones too: of "a,,b" three, of "" one.
std::vector<std::string> split(const std::string& text, char separator = ',');

/// The names of a list "a,b" that was given as `subject`; UsageError where one is empty or comes
/// twice.
std::vector<std::string> name_list(const std::string& text, const std::string& subject);

/// Adds a line unless it is there.
void add_once(const std::string& line, std::vector<std::string>& lines);

/// "a, b, c"
std::string join(const std::vector<std::string>& names);

}  // namespace elliptical
