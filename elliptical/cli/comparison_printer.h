// SPDX-License-Identifier: MIT
//
// A comparison on stdout: for people one table per thing measured and sentences, for programs JSON
// with everything, or CSV.
#pragma once

#include <iosfwd>
#include <string>

#include "elliptical/report/comparison.h"

namespace elliptical::cli {

/// `format`: "table", "json" or "csv".
void print_comparison(std::ostream& stream,
                      const report::Comparison& comparison,
                      const std::string& format);

}  // namespace elliptical::cli
