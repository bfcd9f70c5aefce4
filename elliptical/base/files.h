// SPDX-License-Identifier: MIT
//
// Files that are never half there. Every failure is an exception that names the file, what was
// tried, the system's reason and, on a full disk, the free space: DataError for reading, FileError
// for writing. What is written into a folder that may be somebody else's, a run folder, follows no
// symbolic link there: the link would choose which of its user's files is overwritten.
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

/// What FileWriter does with a file that is there already.
enum class IfThere { kTruncate, kFail };

/// A new file, written front to back and made durable by `finish`. Short writes and interruptions
/// by signals are continued.
class FileWriter {
 public:
  /// `kTruncate` follows links: it is for paths that the user gave. `kFail` follows none.
  explicit FileWriter(const std::filesystem::path& path, IfThere if_there = IfThere::kTruncate);
  ~FileWriter();  ///< closes; does not delete
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  /// Syncs to disk and closes.
  void finish();

 private:
  friend class FileReplacement;
  /// Creates `path`, which messages call `shown`.
  FileWriter(const std::filesystem::path& path,
             const std::filesystem::path& shown,
             IfThere if_there);

  std::filesystem::path path_;
  int descriptor_ = -1;
};

/// A file that takes the place of `path` when it is complete: `path` holds the old or the new
/// contents at any moment. Until then it lies beside, as NAME.PROCESS-RANDOM.new, so that no other
/// process writes to it; it goes with this object, and one that a dead process left goes with the
/// next replacement of the same file. A link at `path` is itself replaced.
class FileReplacement {
 public:
  explicit FileReplacement(const std::filesystem::path& path);
  ~FileReplacement();  ///< removes what was not finished
  FileReplacement(const FileReplacement&) = delete;
  FileReplacement& operator=(const FileReplacement&) = delete;

  FileWriter& file() { return file_; }
  /// Syncs, renames over `path`, syncs the folder.
  void finish();

 private:
  std::filesystem::path path_, beside_;
  FileWriter file_;
};

/// A FileReplacement that holds `text`.
void write_file_atomically(const std::filesystem::path& path, std::string_view text);

/// Opens a file that is changed in place (`flags`: O_RDWR, O_WRONLY | O_APPEND), making it where it
/// is missing; the descriptor. It must be a regular file itself: a link is refused, and so is a
/// pipe, which would wait for ever.
int open_in_place(const std::filesystem::path& path, int flags);

/// Makes renames and deletions in a folder durable.
void sync_folder(const std::filesystem::path& folder);

}  // namespace elliptical
