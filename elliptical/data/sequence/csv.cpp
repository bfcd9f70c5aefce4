// SPDX-License-Identifier: MIT
#include "elliptical/base/errors.h"
#include "elliptical/data/sequence/csv_impl.h"

namespace elliptical::data {

void for_each_csv_row(std::string_view text,
                      const std::string& name,
                      const std::function<void(const std::vector<std::string>& cells)>& use) {
  std::vector<std::string> cells = {""};
  bool is_quoted = false, has_any = false;
  const auto finish = [&] {
    if (has_any) use(cells);
    cells = {""};
    has_any = false;
  };
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (is_quoted) {
      const bool is_doubled = c == '"' && i + 1 < text.size() && text[i + 1] == '"';
      if (is_doubled) ++i;
      if (c == '"' && !is_doubled) {
        is_quoted = false;
      } else {
        cells.back() += c;
      }
      continue;
    }
    has_any = has_any || (c != '\n' && c != '\r');
    if (c == '"') {
      is_quoted = true;
    } else if (c == ',') {
      cells.emplace_back();
    } else if (c == '\n') {
      finish();
    } else if (c != '\r') {
      cells.back() += c;
    }
  }
  if (is_quoted) throw DataError(name + ": must end each quoted cell, does not");
  finish();
}

}  // namespace elliptical::data
