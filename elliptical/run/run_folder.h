// SPDX-License-Identifier: MIT
//
// The folder of a run, whose paths are those of measure/run_paths.h: how it is made, found and
// locked. The lock belongs to the open file, so it ends with the process that holds it, however
// that ends.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "elliptical/measure/run_paths.h"

namespace elliptical::run {

namespace fs = std::filesystem;

using measure::RunPaths;

/// The paths of an existing run; RunError when `folder` holds none.
RunPaths find_run(const fs::path& folder);

/// One process at a time, by a lock on a file. It ends with the process, however that ends.
class FileLock {
 public:
  /// Throws RunError that says that `subject` is in use and names the process that holds the lock.
  FileLock(const fs::path& path, const fs::path& subject);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int descriptor_ = -1;
};

/// Exclusive use of a run folder.
class RunLock {
 public:
  explicit RunLock(const RunPaths& paths);
  /// The same, then `then`; the lock is let go when that throws.
  RunLock(const RunPaths& paths, const std::function<void()>& then) : RunLock(paths) { then(); }

 private:
  FileLock lock_;
};

/// RunError unless a new run can be made there: no folder yet, or one with nothing in it.
void check_new(const RunPaths& paths);

/// Makes and locks a folder for a new run, or takes an empty one; RunError as above. The run begins
/// to exist with `write_config`.
RunLock create_run_folder(const RunPaths& paths);

/// The configuration, atomically.
void write_config(const RunPaths& paths, const std::string& toml);

}  // namespace elliptical::run
