// SPDX-License-Identifier: MIT
#include "elliptical/report/data_table.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <stdexcept>

namespace elliptical::report {
namespace {

using nlohmann::json;

json column_json(const std::vector<std::vector<json>>& rows, size_t column) {
  const bool is_text = std::any_of(rows.begin(), rows.end(),
                                   [&](const auto& row) { return row[column].is_string(); });
  json values = json::array(), texts = json::array();
  std::map<json, size_t> places;
  for (const std::vector<json>& row : rows) {
    if (!is_text) {
      values.push_back(row[column]);
      continue;
    }
    const auto [place, is_new] = places.emplace(row[column], places.size());
    if (is_new) texts.push_back(row[column]);
    values.push_back(place->second);
  }
  return is_text ? json{{"texts", texts}, {"at", values}} : values;
}

}  // namespace

json chart_number(double value, int digits) {
  if (!std::isfinite(value)) return nullptr;
  char text[40];
  std::snprintf(text, sizeof text, "%.*g", digits, value);
  const double rounded = std::strtod(text, nullptr);
  // Whole numbers without ".0": a third of the bytes of a column of steps.
  if (rounded == std::trunc(rounded) && std::abs(rounded) < 1e15) {
    return static_cast<int64_t>(rounded);
  }
  return rounded;
}

std::string number_text(double value, int digits) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  const double magnitude = std::abs(value);
  char text[64];
  if (magnitude != 0 && (magnitude < 1e-4 || magnitude >= 1e9)) {
    std::snprintf(text, sizeof text, "%.*g", digits, value);
    return text;
  }
  const int whole_digits =
      magnitude < 1 ? 1 : static_cast<int>(std::floor(std::log10(magnitude))) + 1;
  std::snprintf(text, sizeof text, "%.*f", std::max(0, digits - whole_digits), value);
  std::string result = text;
  size_t point = std::min(result.find('.'), result.size());
  for (const size_t first = value < 0 ? 1 : 0; point > first + 3;) {
    point -= 3;
    result.insert(point, ",");
  }
  return result;
}

void DataTable::add(std::initializer_list<json> row) {
  if (row.size() != columns_.size()) {
    throw std::logic_error("DataTable: row must have " + std::to_string(columns_.size()) +
                           " values, has " + std::to_string(row.size()));
  }
  rows_.emplace_back(row);
}

size_t DataTable::place_of(const std::string& column) const {
  const auto found = std::find(columns_.begin(), columns_.end(), column);
  if (found == columns_.end()) throw std::logic_error("DataTable: no column " + column);
  return static_cast<size_t>(found - columns_.begin());
}

const json& DataTable::at(size_t row, const std::string& column) const {
  return rows_[row][place_of(column)];
}

std::vector<size_t> DataTable::rows_where(const std::string& column,
                                          const std::string& text) const {
  const size_t place = place_of(column);
  std::vector<size_t> found;
  for (size_t row = 0; row < rows_.size(); ++row) {
    if (rows_[row][place] == text) found.push_back(row);
  }
  return found;
}

json DataTable::to_json() const {
  json values = json::array();
  for (size_t i = 0; i < columns_.size(); ++i) values.push_back(column_json(rows_, i));
  return {{"columns", columns_}, {"values", std::move(values)}};
}

}  // namespace elliptical::report
