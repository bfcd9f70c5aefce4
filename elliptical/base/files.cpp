// SPDX-License-Identifier: MIT
#include "elliptical/base/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "elliptical/base/errors.h"

namespace elliptical {
namespace {

std::string reason(int code) { return std::generic_category().message(code); }

[[noreturn]] void fail_reading(const std::filesystem::path& path, const char* action, int code) {
  throw DataError(path.string() + ": can not " + action + ": " + reason(code));
}

[[noreturn]] void fail_writing(const std::filesystem::path& path, const char* action, int code) {
  std::string text = path.string() + ": can not " + action + ": " + reason(code);
  if (code == ENOSPC || code == EDQUOT) {
    std::error_code ignored;
    const auto folder = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
    const auto space = std::filesystem::space(folder, ignored);
    if (!ignored) text += " (" + std::to_string(space.available >> 20) + " MiB free)";
  }
  throw FileError(text, code);
}

/// Calls `f` until a signal does not interrupt it.
template <class F>
auto uninterrupted(F f) {
  auto result = f();
  while (result < 0 && errno == EINTR) result = f();
  return result;
}

/// Closes a descriptor at the end of a block.
struct Closer {
  int descriptor;
  ~Closer() { ::close(descriptor); }
};

}  // namespace

std::string read_file(const std::filesystem::path& path, uint64_t max_bytes) {
  // O_NONBLOCK: opening a pipe without a writer would wait for ever.
  const int descriptor =
      uninterrupted([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); });
  if (descriptor < 0) fail_reading(path, "open", errno);
  const Closer closer{descriptor};
  struct stat status{};
  if (::fstat(descriptor, &status) != 0) fail_reading(path, "examine", errno);
  if (!S_ISREG(status.st_mode)) throw DataError(path.string() + ": must be a regular file");
  const auto too_long = [&] {
    return DataError(path.string() + ": must have at most " + std::to_string(max_bytes) +
                     " bytes, has more");
  };
  if (static_cast<uint64_t>(status.st_size) > max_bytes) throw too_long();

  // One byte more than it should have: the end of the file is seen without a second buffer.
  std::string text(static_cast<size_t>(status.st_size) + 1, '\0');
  size_t length = 0;
  while (true) {
    const ssize_t count = uninterrupted(
        [&] { return ::read(descriptor, text.data() + length, text.size() - length); });
    if (count < 0) fail_reading(path, "read", errno);
    if (count == 0) break;
    length += static_cast<size_t>(count);
    if (length > max_bytes) throw too_long();
    if (length == text.size()) text.resize(2 * length);
  }
  text.resize(length);
  return text;
}

FileWriter::FileWriter(const std::filesystem::path& path) : path_(path) {
  descriptor_ = uninterrupted(
      [&] { return ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666); });
  if (descriptor_ < 0) fail_writing(path_, "create", errno);
}

FileWriter::~FileWriter() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void FileWriter::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const size_t piece = std::min(bytes.size(), size_t{1} << 30);
    const ssize_t count = uninterrupted([&] { return ::write(descriptor_, bytes.data(), piece); });
    if (count < 0) fail_writing(path_, "write", errno);
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
}

void FileWriter::finish() {
  if (uninterrupted([&] { return ::fsync(descriptor_); }) != 0) fail_writing(path_, "sync", errno);
  // After a failed close the descriptor is gone as well; the data was synced before.
  if (::close(std::exchange(descriptor_, -1)) != 0 && errno != EINTR) {
    fail_writing(path_, "close", errno);
  }
}

void write_file_atomically(const std::filesystem::path& path, std::string_view text) {
  std::filesystem::path beside = path;
  beside += ".new";
  try {
    FileWriter writer(beside);
    writer.write(text);
    writer.finish();
    if (::rename(beside.c_str(), path.c_str()) != 0) fail_writing(path, "rename", errno);
  } catch (...) {
    ::unlink(beside.c_str());
    throw;
  }
  sync_folder(path.has_parent_path() ? path.parent_path() : ".");
}

void sync_folder(const std::filesystem::path& folder) {
  const int descriptor =
      uninterrupted([&] { return ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
  if (descriptor < 0) fail_writing(folder, "open folder", errno);
  const Closer closer{descriptor};
  // EINVAL: a file system without syncing of folders.
  if (uninterrupted([&] { return ::fsync(descriptor); }) != 0 && errno != EINVAL) {
    fail_writing(folder, "sync folder", errno);
  }
}

}  // namespace elliptical
