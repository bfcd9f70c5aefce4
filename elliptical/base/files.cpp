// SPDX-License-Identifier: MIT
#include "elliptical/base/files.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <system_error>
#include <utility>

#include "elliptical/base/errors.h"
#include "elliptical/base/lines.h"
#include "elliptical/base/reading_failed.h"

namespace elliptical {
namespace {

namespace fs = std::filesystem;

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

std::string reason(int code) { return std::generic_category().message(code); }

[[noreturn]] void fail_writing(const fs::path& path, const char* action, int code) {
  std::string text = path.string() + ": can not " + action + ": " + reason(code);
  if (code == ENOSPC || code == EDQUOT) {
    std::error_code ignored;
    const auto space = fs::space(folder_of(path), ignored);
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

constexpr std::string_view kNew = ".new";

/// NAME.PROCESS-RANDOM.new
fs::path unique_name_beside(const fs::path& path) {
  uint64_t random = 0;
  if (::getrandom(&random, sizeof random, 0) != sizeof random) {
    fail_writing(path, "choose a name beside", errno);
  }
  std::array<char, 16> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), random, 16).ptr;
  fs::path beside = path;
  beside += "." + std::to_string(::getpid()) + "-" + std::string(digits.data(), end);
  beside += kNew;
  return beside;
}

/// The process in such a name of a file beside `path`; 0 when it is no such name.
pid_t process_of(std::string_view name, const fs::path& path) {
  const std::string prefix = path.filename().string() + ".";
  if (!name.starts_with(prefix) || !name.ends_with(kNew)) return 0;
  pid_t process = 0;
  const char* digits = name.data() + prefix.size();
  const auto parsed = std::from_chars(digits, name.data() + name.size(), process);
  const bool is_ours = parsed.ec == std::errc() && process > 0 && *parsed.ptr == '-';
  return is_ours ? process : 0;
}

/// What processes that are gone left beside `path`. It stays where it can not be listed or removed.
void remove_leftovers(const fs::path& path) {
  std::error_code error;
  for (fs::directory_iterator entry(folder_of(path), error), end; !error && entry != end;
       entry.increment(error)) {
    const fs::path file = entry->path();
    const pid_t process = process_of(file.filename().string(), path);
    if (process > 0 && ::kill(process, 0) != 0 && errno == ESRCH) ::unlink(file.c_str());
  }
}

/// Closes a descriptor at the end of a block.
struct Closer {
  int descriptor;
  ~Closer() { ::close(descriptor); }
};

int open_for_reading(const fs::path& path) {
  // O_NONBLOCK: opening a pipe without a writer would wait for ever.
  const int descriptor =
      uninterrupted([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); });
  if (descriptor < 0) throw_reading_failed(path, "open", errno);
  return descriptor;
}

/// Of a regular file; everything else is refused.
uint64_t length_of(const fs::path& path, int descriptor) {
  struct stat status{};
  if (::fstat(descriptor, &status) != 0) throw_reading_failed(path, "examine", errno);
  if (!S_ISREG(status.st_mode)) throw DataError(path.string() + ": must be a regular file");
  return static_cast<uint64_t>(status.st_size);
}

}  // namespace

std::string read_file(const fs::path& path, uint64_t max_bytes) {
  const Closer closer{open_for_reading(path)};
  const int descriptor = closer.descriptor;
  const uint64_t expected = length_of(path, descriptor);
  const auto too_long = [&] {
    return DataError(path.string() + ": must have at most " + std::to_string(max_bytes) +
                     " bytes, has more");
  };
  if (expected > max_bytes) throw too_long();

  // One byte more than it should have: the end of the file is seen without a second buffer.
  std::string text(static_cast<size_t>(expected) + 1, '\0');
  size_t length = 0;
  while (true) {
    const ssize_t count = uninterrupted(
        [&] { return ::read(descriptor, text.data() + length, text.size() - length); });
    if (count < 0) throw_reading_failed(path, "read", errno);
    if (count == 0) break;
    length += static_cast<size_t>(count);
    if (length > max_bytes) throw too_long();
    if (length == text.size()) text.resize(2 * length);
  }
  text.resize(length);
  return text;
}

void read_pieces(const fs::path& path, const std::function<void(std::string_view)>& use) {
  const Closer closer{open_for_reading(path)};
  length_of(path, closer.descriptor);
  std::string piece(size_t{1} << 20, '\0');
  while (true) {
    const ssize_t count =
        uninterrupted([&] { return ::read(closer.descriptor, piece.data(), piece.size()); });
    if (count < 0) throw_reading_failed(path, "read", errno);
    if (count == 0) return;
    use(std::string_view(piece).substr(0, static_cast<size_t>(count)));
  }
}

FileWriter::FileWriter(const fs::path& path, IfThere if_there) : FileWriter(path, path, if_there) {}

FileWriter::FileWriter(const fs::path& path, const fs::path& shown, IfThere if_there)
    : path_(shown) {
  const int how = if_there == IfThere::kFail ? O_EXCL : O_TRUNC;  // O_EXCL follows no link
  descriptor_ = uninterrupted(
      [&] { return ::open(path.c_str(), O_WRONLY | O_CREAT | how | O_CLOEXEC, 0666); });
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

FileReplacement::FileReplacement(const fs::path& path)
    : path_(path), beside_(unique_name_beside(path)), file_(beside_, path, IfThere::kFail) {
  remove_leftovers(path);
}

FileReplacement::~FileReplacement() {
  if (!beside_.empty()) ::unlink(beside_.c_str());
}

void FileReplacement::finish() {
  file_.finish();
  if (::rename(beside_.c_str(), path_.c_str()) != 0) fail_writing(path_, "rename", errno);
  beside_.clear();
  sync_folder(folder_of(path_));
}

void write_file_atomically(const fs::path& path, std::string_view text) {
  FileReplacement replacement(path);
  replacement.file().write(text);
  replacement.finish();
}

int open_in_place(const fs::path& path, int flags) {
  const int all = flags | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  const int descriptor = uninterrupted([&] { return ::open(path.c_str(), all, 0666); });
  if (descriptor < 0 && errno == ELOOP) {
    throw FileError(path.string() + ": must be a file of this folder, is a symbolic link " +
                        "(put a copy of the file in its place, or remove the link)",
                    ELOOP);
  }
  // ENXIO: a pipe that nobody reads.
  if (descriptor < 0 && errno != ENXIO) fail_writing(path, "open", errno);
  struct stat status{};
  if (descriptor < 0 || ::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    if (descriptor >= 0) ::close(descriptor);
    throw FileError(path.string() + ": must be a regular file", EINVAL);
  }
  return descriptor;
}

void sync_folder(const fs::path& folder) {
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
