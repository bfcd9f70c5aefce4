// SPDX-License-Identifier: MIT
//
// Rows that a chart draws, embedded in the page by column: names of columns and texts stand there
// once, numbers with as many digits as a reader can use.
#pragma once

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace elliptical::report {

/// A number for a chart, rounded to five significant digits; null when it is not finite, which
/// charts leave out. Tables print such values from their text.
nlohmann::json chart_number(double value, int digits = 5);

/// The same for people: "31.42", "1,234", "nan", "inf".
std::string number_text(double value, int digits = 4);

class DataTable {
 public:
  explicit DataTable(std::vector<std::string> columns) : columns_(std::move(columns)) {}
  /// One value for each column: numbers through `chart_number`, texts, null.
  void add(std::initializer_list<nlohmann::json> row);
  bool empty() const { return rows_.empty(); }
  size_t size() const { return rows_.size(); }
  /// One value; `column` must exist.
  const nlohmann::json& at(size_t row, const std::string& column) const;
  /// Rows that have this text in a column.
  std::vector<size_t> rows_where(const std::string& column, const std::string& text) const;
  /// {"columns": [...], "values": [one list per column]}; a column of texts is
  /// {"texts": [...], "at": [...]}.
  nlohmann::json to_json() const;

 private:
  size_t place_of(const std::string& column) const;

  std::vector<std::string> columns_;
  std::vector<std::vector<nlohmann::json>> rows_;
};

}  // namespace elliptical::report
