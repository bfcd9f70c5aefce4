// SPDX-License-Identifier: MIT
#include "elliptical/cli/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <ostream>

#include "elliptical/base/printable.h"

namespace elliptical::cli {
namespace {

bool looks_numeric(const std::string& cell) {
  if (cell.empty() || cell == "-") return true;
  const bool is_signed = cell.size() > 1 && (cell.front() == '+' || cell.front() == '-');
  return std::isdigit(static_cast<unsigned char>(cell[is_signed ? 1 : 0])) != 0;
}

std::string csv_cell(const std::string& cell) {
  if (cell.find_first_of(",\"\r\n") == std::string::npos) return cell;
  std::string quoted = "\"";
  for (const char c : cell) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

void print_csv_row(std::ostream& stream, const std::vector<std::string>& cells) {
  for (size_t i = 0; i < cells.size(); ++i) stream << (i ? "," : "") << csv_cell(cells[i]);
  stream << "\n";
}

}  // namespace

void print_text(std::ostream& stream, const Table& given) {
  Table table = given;  // names of classes, files and recipes are what others wrote
  for (std::string& name : table.columns) name = printable(name);
  for (auto& row : table.rows) {
    for (std::string& cell : row) cell = printable(cell);
  }
  std::vector<size_t> widths;
  std::vector<bool> numeric;
  for (size_t i = 0; i < table.columns.size(); ++i) {
    widths.push_back(table.columns[i].size());
    numeric.push_back(i > 0);  // the first column is a name, even when it starts with a digit
    for (const auto& row : table.rows) {
      widths[i] = std::max(widths[i], row[i].size());
      numeric[i] = numeric[i] && looks_numeric(row[i]);
    }
  }
  const auto print_row = [&](const std::vector<std::string>& cells) {
    std::string line;
    for (size_t i = 0; i < cells.size(); ++i) {
      if (i) line += "  ";
      line += numeric[i] ? fmt::format("{:>{}}", cells[i], widths[i])
                         : fmt::format("{:<{}}", cells[i], widths[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    stream << line << "\n";
  };
  print_row(table.columns);
  for (const auto& row : table.rows) print_row(row);
}

void print_csv(std::ostream& stream, const Table& table) {
  print_csv_row(stream, table.columns);
  for (const auto& row : table.rows) print_csv_row(stream, row);
}

Table records_table(const nlohmann::ordered_json& records) {
  Table table;
  for (const auto& [key, value] : records.front().items()) table.columns.push_back(key);
  for (const auto& json : records) {
    std::vector<std::string>& cells = table.rows.emplace_back();
    for (const auto& value : json) {
      cells.push_back(value.is_null()     ? ""
                      : value.is_string() ? value.get<std::string>()
                                          : value.dump());
    }
  }
  return table;
}

}  // namespace elliptical::cli
