// SPDX-License-Identifier: MIT
#include "elliptical/base/files.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>

#include "elliptical/base/errors.h"
#include "tests/support/error_message.h"
#include "tests/support/temporary_folder.h"

namespace elliptical {
namespace {

using test::error_message;

TEST(ReadFile, ReadsWhatIsThere) {
  const test::TemporaryFolder folder;
  const std::string text = std::string("a\0b", 3) + std::string(1 << 20, 'x');
  EXPECT_EQ(read_file(folder.write("f", text)), text);
  EXPECT_EQ(read_file(folder.write("empty", "")), "");
  EXPECT_NE(read_file("/proc/self/status"), "");  // has no size
}

TEST(ReadFile, SaysWhyNot) {
  const test::TemporaryFolder folder;
  const auto error = [](const std::filesystem::path& path, uint64_t limit = 100) {
    return error_message<DataError>([&] { read_file(path, limit); });
  };
  const auto path = folder.write("f", std::string(101, 'x'));
  EXPECT_EQ(error(path), path.string() + ": must have at most 100 bytes, has more");
  EXPECT_EQ(error(path, 101), "no error");
  EXPECT_EQ(error("/proc/self/status", 10),
            "/proc/self/status: must have at most 10 bytes, has more");
  EXPECT_EQ(error(folder.path()), folder.path().string() + ": must be a regular file");
  EXPECT_EQ(error(folder.path() / "none"),
            (folder.path() / "none").string() + ": can not open: No such file or directory");
  const std::string pipe = (folder.path() / "pipe").string();
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(error(pipe), pipe + ": must be a regular file");
}

TEST(WriteFileAtomically, ReplacesTheWholeFile) {
  const test::TemporaryFolder folder;
  const auto path = folder.path() / "f";
  write_file_atomically(path, "one");
  EXPECT_EQ(folder.read("f"), "one");
  write_file_atomically(path, "");
  EXPECT_EQ(folder.read("f"), "");
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "f.new"));
}

TEST(WriteFileAtomically, C3FailureLeavesTheOldFile) {
  const test::TemporaryFolder folder;
  const auto path = folder.write("f", "old");
  // A limit on the length of files stands for a full disk.
  struct rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto ignored = std::signal(SIGXFSZ, SIG_IGN);
  struct rlimit limit = before;
  limit.rlim_cur = 1000;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  const std::string message =
      error_message<FileError>([&] { write_file_atomically(path, std::string(5000, 'x')); });
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, ignored);
  EXPECT_EQ(message, path.string() + ".new: can not write: File too large");
  EXPECT_EQ(folder.read("f"), "old");
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "f.new"));
}

TEST(FileWriter, C3FullDiskNamesTheFreeSpace) {
  try {
    FileWriter writer("/dev/full");
    writer.write("x");
    FAIL();
  } catch (const FileError& error) {
    EXPECT_EQ(error.code, ENOSPC);
    const std::string message = error.what();
    EXPECT_EQ(message.rfind("/dev/full: can not write: No space left on device (", 0), 0u)
        << message;
    EXPECT_TRUE(message.ends_with(" MiB free)")) << message;
  }
}

TEST(FileWriter, NamesAMissingFolder) {
  EXPECT_EQ(error_message<FileError>([] { FileWriter writer("/none/f"); }),
            "/none/f: can not create: No such file or directory");
  EXPECT_EQ(error_message<FileError>([] { sync_folder("/none"); }),
            "/none: can not open folder: No such file or directory");
}

}  // namespace
}  // namespace elliptical
