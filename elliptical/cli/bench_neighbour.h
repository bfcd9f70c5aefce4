// SPDX-License-Identifier: MIT
//
// `elliptical bench --what neighbour`.
#pragma once

#include <string>

namespace elliptical::cli {

/// Training and one attention call beside a busy process, relative to quiet, as a table, JSON or
/// CSV. `quick`: tiny sizes, to see that it works.
int bench_neighbour(const std::string& format, int repeats, bool quick);

}  // namespace elliptical::cli
