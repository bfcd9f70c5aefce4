// SPDX-License-Identifier: MIT
//
// Comma-separated values as RFC 4180 has them: cells in quotes hold commas, line ends and doubled
// quotes.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace elliptical::data {

/// Calls `use` for each row. DataError "NAME: ..." for a quote that never ends.
void for_each_csv_row(std::string_view text,
                      const std::string& name,
                      const std::function<void(const std::vector<std::string>& cells)>& use);

}  // namespace elliptical::data
