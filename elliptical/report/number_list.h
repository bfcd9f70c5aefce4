// SPDX-License-Identifier: MIT
//
// The numbers of runs as a list: value, the command that measures it again, and the record itself.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "elliptical/report/run_data.h"

namespace elliptical::report {

inline constexpr size_t kMaxNumbers = 600;

struct NumberList {
  /// [{run, metric, text, count, what, command, record}], kMaxNumbers at most.
  nlohmann::json rows = nlohmann::json::array();
  size_t num_all = 0;  ///< how many there are, listed or not
};

/// What was asked for with `elliptical eval`, and the last validation of each training. Numbers of
/// single blocks, heads and coordinates are left to charts.
NumberList list_numbers(const std::vector<RunData>& runs);

/// The command that measures a record of `run` again.
std::string command_of(const Record& record, const RunData& run);

}  // namespace elliptical::report
