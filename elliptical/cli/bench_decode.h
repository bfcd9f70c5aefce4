// SPDX-License-Identifier: MIT
//
// `elliptical bench --what decode`.
#pragma once

#include <string>

namespace elliptical::cli {

/// Milliseconds per decoded token at growing positions, as a table, JSON or CSV. `quick`: a tiny
/// model, to see that it works.
int bench_decode(const std::string& format, int repeats, bool quick);

}  // namespace elliptical::cli
