// SPDX-License-Identifier: MIT
//
// Data sets as `data` and `demo` handle them.
#pragma once

#include <string>

namespace elliptical::cli {

/// Fetches a data set of the catalog to where `data get` puts it, and says so.
void get_data_set(const std::string& name);

}  // namespace elliptical::cli
