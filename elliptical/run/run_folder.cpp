// SPDX-License-Identifier: MIT
#include "elliptical/run/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstring>

#include "elliptical/base/errors.h"
#include "elliptical/base/files.h"

namespace elliptical::run {
namespace {

[[noreturn]] void fail(const fs::path& path, const std::string& what) {
  throw RunError(path.string() + ": " + what + ": " + std::strerror(errno));
}

/// The lock of a folder that may be changed. Checkpoints are removed and renamed: a link would let
/// a foreign folder do that to another run's.
fs::path own_lock(const RunPaths& paths) {
  std::error_code ignored;
  if (fs::is_symlink(paths.checkpoints(), ignored)) {
    throw RunError(paths.checkpoints().string() +
                   ": must be a folder of the run itself, is a symbolic link (move the folder it "
                   "points to into its place, or remove the link)");
  }
  return paths.lock();
}

/// The process that wrote itself into the lock file; empty when there is none to read.
std::string holder(int descriptor) {
  std::array<char, 32> text = {};
  const ssize_t length = pread(descriptor, text.data(), text.size() - 1, 0);
  std::string pid(text.data(), length > 0 ? static_cast<size_t>(length) : 0);
  pid.erase(pid.find_last_not_of(" \n") + 1);
  return pid;
}

}  // namespace

RunPaths find_run(const fs::path& folder) {
  const RunPaths paths{folder};
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    throw RunError(folder.string() + ": must be the folder of a run, there is no such folder");
  }
  if (!fs::exists(paths.config(), error)) {
    throw RunError(folder.string() +
                   ": must be the folder of a run, has no config.toml (start one: elliptical train "
                   "RECIPE --run DIR)");
  }
  return paths;
}

RunLock::RunLock(const RunPaths& paths) : lock_(own_lock(paths), paths.folder) {}

FileLock::FileLock(const fs::path& path, const fs::path& subject) {
  descriptor_ = open_in_place(path, O_RDWR);
  if (flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
    const bool busy = errno == EWOULDBLOCK;
    const std::string pid = holder(descriptor_);
    if (busy) {
      close(descriptor_);
      throw RunError(subject.string() + ": is in use by process " +
                     (pid.empty() ? "(unknown)" : pid) + " (wait for it or stop it)");
    }
    const int reason = errno;
    close(descriptor_);
    errno = reason;
    fail(path, "could not be locked");
  }
  // For the message above only; a full disk may leave it empty.
  const std::string pid = std::to_string(getpid()) + "\n";
  if (ftruncate(descriptor_, 0) == 0) {
    [[maybe_unused]] const ssize_t written = pwrite(descriptor_, pid.data(), pid.size(), 0);
  }
}

FileLock::~FileLock() { close(descriptor_); }

void check_new(const RunPaths& paths) {
  const std::string folder = paths.folder.string();
  std::error_code error;
  if (fs::exists(paths.config(), error)) {
    throw RunError(folder + ": must be new, holds a run already (continue it: elliptical resume " +
                   folder + ")");
  }
  if (!fs::exists(paths.folder, error)) return;
  for (const fs::directory_entry& entry : fs::directory_iterator(paths.folder, error)) {
    // What an earlier start left that died before the run began to exist.
    const std::string name = entry.path().filename().string();
    if (name != "lock" && name != "checkpoints" && !name.starts_with("config.toml.")) {
      throw RunError(folder + ": must be new or empty, holds " + name);
    }
  }
  if (error) throw RunError(folder + ": could not be read: " + error.message());
}

RunLock create_run_folder(const RunPaths& paths) {
  // Found now, not when the first checkpoint is due.
  constexpr size_t kLongestFile =
      sizeof "/checkpoints/step-1000000000.incomplete/optimizer.safetensors";
  if (paths.folder.native().size() + kLongestFile > PATH_MAX) {
    throw RunError(paths.folder.string() +
                   ": could not be created: File name too long (its files would have longer ones "
                   "than the system takes)");
  }
  std::error_code error;
  fs::create_directories(paths.folder, error);
  if (error) {
    throw RunError(paths.folder.string() + ": could not be created: " + error.message());
  }
  const auto make = [&] {
    check_new(paths);  // under the lock: another process may have been faster
    fs::remove_all(paths.checkpoints(), error);  // of a fork that died early
    fs::create_directory(paths.checkpoints(), error);
    if (error) {
      throw RunError(paths.checkpoints().string() + ": could not be created: " + error.message());
    }
  };
  return RunLock(paths, make);
}

void write_config(const RunPaths& paths, const std::string& toml) {
  write_file_atomically(paths.config(), toml);
}

}  // namespace elliptical::run
