// SPDX-License-Identifier: MIT
//
// Results as a table: aligned for people, CSV for programs.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace elliptical::cli {

struct Table {
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
};

/// Columns aligned with spaces, numbers to the right.
void print_text(std::ostream& stream, const Table& table);

/// RFC 4180: cells with commas, quotes or line ends are quoted.
void print_csv(std::ostream& stream, const Table& table);

}  // namespace elliptical::cli
