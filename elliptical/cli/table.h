// SPDX-License-Identifier: MIT
//
// Results as a table: aligned for people, CSV for programs.
#pragma once

#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
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

/// An array of flat JSON records, at least one, as a table: null is an empty cell.
Table records_table(const nlohmann::ordered_json& records);

}  // namespace elliptical::cli
