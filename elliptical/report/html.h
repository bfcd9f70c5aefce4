// SPDX-License-Identifier: MIT
//
// A report: one HTML file that holds its data, its style and its charts, and asks no server for
// anything. A content security policy with the hashes of its scripts keeps every other script
// from running, should a name of somebody else's ever slip through the escaping.
#pragma once

#include <optional>
#include <string>

#include "elliptical/report/comparison.h"
#include "elliptical/report/run_data.h"
#include "elliptical/report/variant_bench.h"

namespace elliptical::report {

struct ReportOptions {
  std::string title = "Elliptical report";
  std::string command = "elliptical report";  ///< how this report was asked for
  std::string version;                        ///< of the program
  std::optional<VariantBench> bench;          ///< what attention variants cost
};

std::string make_report(const RunCollection& collection,
                        const Comparison& comparison,
                        const ReportOptions& options);

}  // namespace elliptical::report
