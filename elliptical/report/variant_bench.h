// SPDX-License-Identifier: MIT
//
// What `elliptical bench --what variants --format json` wrote, as two charts: the time of a
// training step relative to softmax attention, and the memory of one layer over the number of
// tokens.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "elliptical/report/charts.h"

namespace elliptical::report {

struct VariantBench {
  std::string machine;  ///< what it was measured on
  DataTable times{{"attention", "milliseconds", "ratio", "ratio_median"}};
  DataTable memory{{"attention", "tokens", "mebibytes"}};
};

/// Throw DataError when it is not such a list.
VariantBench read_variant_bench(const std::filesystem::path& path);
VariantBench parse_variant_bench(std::string_view text, const std::string& name);

/// Draw the tables "variant_times" and "variant_memory".
std::vector<Chart> variant_charts(const VariantBench& bench);

}  // namespace elliptical::report
