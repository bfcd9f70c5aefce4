// SPDX-License-Identifier: MIT
//
// Files that are never half there. Every failure is an exception that names the file, what was
// tried, the system's reason and, on a full disk, the free space: DataError for reading, FileError
// for writing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace elliptical {

/// The whole file. Throws DataError when it can not be read or is longer than `max_bytes`.
std::string read_file(const std::filesystem::path& path, uint64_t max_bytes = uint64_t{1} << 40);

/// A new file, written front to back and made durable by `finish`. Short writes and interruptions
/// by signals are continued.
class FileWriter {
 public:
  explicit FileWriter(const std::filesystem::path& path);  ///< creates or truncates
  ~FileWriter();                                           ///< closes; does not delete
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  /// Syncs to disk and closes.
  void finish();

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
};

/// Writes beside, syncs, renames over `path`, syncs the folder: `path` holds the old or the new
/// contents at any moment.
void write_file_atomically(const std::filesystem::path& path, std::string_view text);

/// Makes renames and deletions in a folder durable.
void sync_folder(const std::filesystem::path& folder);

}  // namespace elliptical
