// SPDX-License-Identifier: MIT
//
// A folder for what parsers want to have in files; in memory where the system has such a place. It
// goes with the process.
#pragma once

#include <filesystem>

namespace elliptical::test {

const std::filesystem::path& scratch();

}  // namespace elliptical::test
