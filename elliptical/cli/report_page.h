// SPDX-License-Identifier: MIT
//
// A report as `report` and `demo` ask for it: runs as one HTML file.
#pragma once

#include <filesystem>
#include <vector>

#include "elliptical/cli/commands.h"
#include "elliptical/report/html.h"

namespace elliptical::cli {

struct ReportRequest {
  std::vector<std::filesystem::path> folders;  ///< of runs, or with run folders in them
  std::filesystem::path output;
  report::ComparisonOptions comparison = {};
  report::ReportOptions page = {};
  Arguments words;  ///< that ask for the same on a command line; the page names them
};

/// Writes the file and says so. RunError where there is nothing to report.
void write_report(ReportRequest request);

}  // namespace elliptical::cli
