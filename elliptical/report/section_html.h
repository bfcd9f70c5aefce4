// SPDX-License-Identifier: MIT
//
// The HTML that sections are made of. Everything that comes from runs is escaped here or by
// escape.h.
#pragma once

#include <string>
#include <vector>

#include "elliptical/report/charts.h"

namespace elliptical::report {

/// "12 runs", "1 run".
std::string counted(size_t count, const std::string& noun);

/// A chart with its caption and its data; `controls` stand above it.
std::string figure(const Chart& chart, const std::string& controls = "");
std::string grid(const std::vector<Chart>& charts);
/// A choice that the page's script fills.
std::string selector(const std::string& name,
                     const std::string& text,
                     const std::string& options = "");
std::string controls(const std::string& selectors);
std::string section(const std::string& title, const std::string& lead, const std::string& content);
/// Charts side by side; "" where there are none.
std::string chart_section(const std::string& title,
                          const std::string& lead,
                          const std::vector<Chart>& charts);

std::string smoke_box();  ///< the banner of smoke runs
std::string problems_box(const std::vector<std::string>& problems);

}  // namespace elliptical::report
