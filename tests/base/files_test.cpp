// SPDX-License-Identifier: MIT
#include "elliptical/base/files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "elliptical/base/errors.h"
#include "tests/support/error_message.h"
#include "tests/support/temporary_folder.h"

namespace elliptical {
namespace {

using test::error_message;
namespace fs = std::filesystem;
using Names = std::vector<std::string>;

Names names_in(const test::TemporaryFolder& folder) {
  Names names;
  for (const auto& entry : fs::directory_iterator(folder.path())) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

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
  EXPECT_EQ(names_in(folder), Names({"f"}));
}

TEST(WriteFileAtomically, S3NeitherThePlaceNorAnyNameBesideIsFollowed) {
  const test::TemporaryFolder folder, home;
  const auto precious = home.write("precious", "mine");
  // Planted by whoever made the folder.
  for (const char* name : {"f", "f.new", "f.1-0.new"}) {
    fs::create_symlink(precious, folder.path() / name);
  }
  write_file_atomically(folder.path() / "f", "new");
  EXPECT_EQ(home.read("precious"), "mine");
  EXPECT_EQ(folder.read("f"), "new");
  EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(folder.path() / "f")));
}

TEST(FileReplacement, TwoAtATimeDoNotMeet) {
  const test::TemporaryFolder folder;
  const auto path = folder.path() / "f";
  FileReplacement first(path), second(path);
  first.file().write("first");
  second.file().write("second");
  first.finish();
  EXPECT_EQ(folder.read("f"), "first");
  second.finish();
  EXPECT_EQ(folder.read("f"), "second");
  EXPECT_EQ(names_in(folder), Names({"f"}));
}

TEST(FileReplacement, C2WhatIsNotFinishedGoesAway) {
  const test::TemporaryFolder folder;
  folder.write("f.999999999-1f.new", "of a process that was killed");
  folder.write("f.1-1f.new", "of process 1, which lives");
  folder.write("f.999999999-1f.new.txt", "of somebody else");
  folder.write("g.999999999-1f.new", "of another file");
  {
    FileReplacement unfinished(folder.path() / "f");
    unfinished.file().write("half");
  }
  EXPECT_EQ(names_in(folder),
            Names({"f.1-1f.new", "f.999999999-1f.new.txt", "g.999999999-1f.new"}));
}

TEST(OpenInPlace, S3RefusesLinksAndPipes) {
  const test::TemporaryFolder folder, home;
  const auto precious = home.write("precious", "mine");
  const auto link = folder.path() / "link", dangling = folder.path() / "dangling",
             pipe = folder.path() / "pipe";
  fs::create_symlink(precious, link);
  fs::create_symlink(home.path() / "new", dangling);
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const auto error = [](const fs::path& path) {
    return error_message<FileError>([&] { open_in_place(path, O_WRONLY | O_APPEND); });
  };
  const std::string what =
      ": must be a file of this folder, is a symbolic link (put a copy of the file in its place, "
      "or "
      "remove the link)";
  EXPECT_EQ(error(link), link.string() + what);
  EXPECT_EQ(error(dangling), dangling.string() + what);
  EXPECT_FALSE(fs::exists(home.path() / "new"));
  EXPECT_EQ(error(pipe), pipe.string() + ": must be a regular file");
  EXPECT_EQ(error(folder.path()), folder.path().string() + ": can not open: Is a directory");
  const int descriptor = open_in_place(folder.path() / "own", O_WRONLY | O_APPEND);
  EXPECT_GE(descriptor, 0);
  ::close(descriptor);
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
  EXPECT_EQ(message, path.string() + ": can not write: File too large");
  EXPECT_EQ(folder.read("f"), "old");
  EXPECT_EQ(names_in(folder), Names({"f"}));
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

TEST(FileWriter, S3ANewFileFollowsNoLink) {
  const test::TemporaryFolder folder, home;
  const auto path = folder.path() / "f";
  fs::create_symlink(home.path() / "new", path);
  EXPECT_EQ(error_message<FileError>([&] { FileWriter writer(path, IfThere::kFail); }),
            path.string() + ": can not create: File exists");
  EXPECT_FALSE(fs::exists(home.path() / "new"));
}

TEST(FileWriter, NamesAMissingFolder) {
  EXPECT_EQ(error_message<FileError>([] { FileWriter writer("/none/f"); }),
            "/none/f: can not create: No such file or directory");
  EXPECT_EQ(error_message<FileError>([] { sync_folder("/none"); }),
            "/none: can not open folder: No such file or directory");
}

}  // namespace
}  // namespace elliptical
