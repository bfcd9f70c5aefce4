// SPDX-License-Identifier: MIT
//
// Archives that somebody else made. Fault ID: S3 (bombs, names that leave the archive, links, sizes
// that lie).
#include "elliptical/data/archive.h"

#include <gtest/gtest.h>

#include "elliptical/base/errors.h"
#include "tests/support/archives.h"
#include "tests/support/error_message.h"
#include "tests/support/temporary_folder.h"

namespace elliptical::data {
namespace {

using test::deflated;
using test::deflated_member;
using test::error_message;
using test::kTarEnd;
using test::make_zip;
using test::tar_member;
using test::xz_packed;
using test::ZipMember;
using Texts = std::vector<std::string>;

const std::vector<WantedMember> kWanted = {{{"train.txt", "wiki.train.tokens"}, 1000},
                                           {{"test.txt", "wiki.test.tokens"}, 1000}};

/// What the wanted members hold.
Texts unpacked(const std::string& archive, const std::vector<WantedMember>& wanted = kWanted) {
  Texts texts(wanted.size(), "not there");
  read_archive(archive, "a", wanted, [&](size_t index, std::string_view piece) {
    piece.empty() ? texts[index].clear() : void(texts[index] += piece);
  });
  return texts;
}

std::string error(const std::string& archive) {
  return error_message<DataError>([&] { unpacked(archive); });
}

std::string gzip(const std::string& text) { return deflated(text, 31); }

const std::string kTar = tar_member("wikitext/", "", '5') +
                         tar_member("wikitext/wiki.test.tokens", "some test") +
                         tar_member("wikitext/readme", "what this is") +
                         tar_member("wikitext/wiki.train.tokens", std::string(600, 'a')) + kTarEnd;

TEST(Archive, GivesTheWantedMembersOfEveryFormat) {
  const Texts expected = {std::string(600, 'a'), "some test"};
  const std::string zip = make_zip({deflated_member("wikitext/wiki.train.tokens", expected[0]),
                                    {.name = "wikitext/", .packed = ""},
                                    {.name = "wikitext/wiki.test.tokens", .packed = expected[1]}},
                                   "a comment with PK\5\6 in it");
  EXPECT_EQ(unpacked(zip), expected);
  EXPECT_EQ(unpacked(kTar), expected);
  EXPECT_EQ(unpacked(gzip(kTar)), expected);
  EXPECT_EQ(unpacked(xz_packed(kTar)), expected);
  // As gzip writes what it appends, and with zeros behind it.
  EXPECT_EQ(unpacked(gzip(kTar.substr(0, 700)) + gzip(kTar.substr(700)) + std::string(9, '\0')),
            expected);
  EXPECT_EQ(unpacked(kTar.substr(0, kTar.size() - 1024)), expected) << "without its last blocks";
}

TEST(Archive, TakesTheFirstOfSeveralAndEmptyOnes) {
  const std::string tar = tar_member("train.txt", "one") + tar_member("b/train.txt", "two") +
                          tar_member("./test.txt", "") + tar_member("xtest.txt", "no") + kTarEnd;
  EXPECT_EQ(unpacked(tar), Texts({"one", ""}));
  EXPECT_EQ(unpacked(make_zip({{.name = "train.txt", .packed = "one"},
                               {.name = "b/train.txt", .packed = "two"},
                               deflated_member("test.txt", "")})),
            Texts({"one", ""}));
}

TEST(Archive, KnowsLongNames) {
  const std::string folder(200, 'd');
  const std::string line = "path=" + folder + "/train.txt\n";  // 217 bytes with "217 "
  const std::string tar = tar_member("pax", "221 " + line + "20 comment=whatever\n", 'x') +
                          tar_member("cut", "one") + tar_member("all", "13 comment=x\n", 'g') +
                          tar_member("L", folder + "/test.txt" + '\0', 'L') +
                          tar_member("K", folder + '\0', 'K') + tar_member("cut", "two") + kTarEnd;
  ASSERT_EQ(line.size() + 4, 220u);
  std::string right = tar;
  right.replace(right.find("221 "), 3, "220");
  EXPECT_EQ(unpacked(right), Texts({"one", "two"}));
  EXPECT_EQ(error(tar), "a: must be a complete tar archive, is damaged");
}

TEST(Archive, WhatIsMissingIsNamed) {
  EXPECT_EQ(error(make_zip({{.name = "train.txt", .packed = "x"}})),
            "a: must hold test.txt (or wiki.test.tokens), does not");
  EXPECT_EQ(error(gzip(tar_member("test.txt", "x") + kTarEnd)),
            "a: must hold train.txt (or wiki.train.tokens), does not");
}

TEST(Archive, WhatIsNoArchiveIsSaid) {
  const std::string message =
      "a: must be an archive (.zip, .tar, .tar.gz, .tar.xz), is none (other kinds: unpack it and "
      "import the folder)";
  EXPECT_EQ(error(""), message);
  EXPECT_EQ(error("BZh9" + std::string(1000, 'x')), message);
  EXPECT_EQ(error(gzip("just text")), message);
  EXPECT_EQ(error("PK, but no zip"), "a: must be a complete zip archive, is damaged");
}

TEST(Archive, S3NamesMayNotLeaveTheArchive) {
  for (const std::string name :
       {"../train.txt", "/etc/train.txt", "a/../../train.txt", "..", "b/..", "..\\train.txt"}) {
    const std::string message =
        "a: names of its members must stay inside of it, one is \"" + name + "\"";
    EXPECT_EQ(error(make_zip({{.name = name, .packed = "x"}})), message);
    EXPECT_EQ(error(tar_member(name, "x") + kTarEnd), message);
  }
  EXPECT_EQ(error(make_zip({{.name = std::string("a\0b\x1B[2J", 7), .packed = "x"}})),
            "a: names of its members must stay inside of it, one is \"a?b?[2J\"");
  EXPECT_EQ(unpacked(tar_member("a..b/train.txt", "x") + tar_member("..test/test.txt", "y")),
            Texts({"x", "y"}));
}

TEST(Archive, S3LinksAndDevicesAreNoFiles) {
  const std::string message = "a, train.txt: must be a regular file, is a link or a device";
  for (const char type : {'1', '2', '3', '4', '6', 'S'}) {
    EXPECT_EQ(error(tar_member("train.txt", "", type) + kTarEnd), message) << type;
  }
  EXPECT_EQ(error(make_zip({{.name = "train.txt", .packed = "/etc/passwd", .mode = 0120777}})),
            message);
  EXPECT_EQ(error(tar_member("p", "22 GNU.sparse.major=1\n", 'x') + tar_member("train.txt", "x")),
            message);
}

TEST(Archive, S3ABombEndsAtTheLimit) {
  const std::string zeros(1 << 22, '\0');
  // It says how large it is.
  EXPECT_EQ(error(make_zip({deflated_member("train.txt", zeros)})),
            "a, train.txt: must hold at most 1000 bytes, says it holds 4194304");
  EXPECT_EQ(error(gzip(tar_member("train.txt", zeros))),
            "a, train.txt: must hold at most 1000 bytes, says it holds 4194304");
  // It lies.
  ZipMember lie = deflated_member("train.txt", zeros);
  lie.num_bytes = 10;
  EXPECT_EQ(error(make_zip({lie})),
            "a, train.txt: must hold the 10 bytes that it says it holds, holds more");
  size_t most = 0;
  EXPECT_THROW(read_archive(make_zip({lie}), "a", kWanted,
                            [&](size_t, std::string_view piece) { most += piece.size(); }),
               DataError);
  EXPECT_LE(most, 10u);
}

TEST(Archive, S3WhatNobodyAskedForIsBoundedToo) {
  // 300 MiB of zeros, packed in three members of gzip.
  const std::string block = gzip(std::string(100 << 20, '\0'));
  const std::string tar =
      gzip(tar_member("other", "", '0', 300 << 20)) + block + block + block + gzip(kTar);
  EXPECT_EQ(error(tar),
            "a: must hold at most 268437456 bytes, holds more (unpack it and import the folder)");
  EXPECT_EQ(error(tar_member("name", "", 'L', int64_t{1} << 30)),
            "a: names must have at most 65536 bytes, one has 1073741824");
}

TEST(Archive, CutOrDamagedAnywhereIsAnErrorOrTheSame) {
  const std::string zip = make_zip({deflated_member("train.txt", std::string(300, 'a') + "bcd"),
                                    {.name = "test.txt", .packed = "some test"}});
  const std::string tar = tar_member("train.txt", "abc") + tar_member("test.txt", "def") + kTarEnd;
  for (const std::string& archive : {zip, gzip(tar), xz_packed(tar)}) {
    const Texts whole = unpacked(archive);
    for (size_t i = 0; i < archive.size(); ++i) {
      EXPECT_NE(error(archive.substr(0, i)), "no error") << i;
      std::string damaged = archive;
      damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
      Texts texts = whole;
      error_message<DataError>([&] { texts = unpacked(damaged); });
      EXPECT_EQ(texts, whole) << i;  // a date or an attribute that nobody reads
    }
  }
  EXPECT_EQ(error(tar.substr(0, 700)), "a: must be a complete tar archive, is cut");
  EXPECT_EQ(error(gzip(tar).substr(0, 60)), "a: must be a complete gzip file, is damaged or cut");
  EXPECT_EQ(error(xz_packed(tar).substr(0, 60)),
            "a: must be a complete xz file, is damaged or cut");
  std::string damaged = tar;
  damaged[600] = 'x';
  damaged[1024 + 3] = 'x';
  EXPECT_EQ(error(damaged), "a: must be a complete tar archive, is damaged");
}

TEST(Archive, ZipsThatAreNotReadSaySo) {
  EXPECT_EQ(error(make_zip({{.name = "train.txt", .packed = "x", .flags = 1}})),
            "a, train.txt: must not be encrypted, is (unpack it and import the folder)");
  EXPECT_EQ(error(make_zip({{.name = "train.txt", .packed = "x", .method = 12}})),
            "a, train.txt: must be stored or deflated, has method 12 (unpack it and import the "
            "folder)");
  EXPECT_EQ(error(make_zip({}, "", 0xFFFF)),
            "a: must be a zip archive of less than 4 GiB, is zip64 (unpack it and import the "
            "folder)");
  EXPECT_EQ(error(make_zip({{.name = "train.txt", .packed = "x", .checksum = 7}})),
            "a, train.txt: must be complete, is damaged or cut");
  EXPECT_EQ(error(make_zip({{.name = "train.txt", .packed = "x", .local_name = "other.txt"}})),
            "a, train.txt: must be complete, is damaged or cut");
}

TEST(Archive, UnpacksIntoNewFilesOnly) {
  const test::TemporaryFolder folder, home;
  const auto precious = home.write("precious", "mine");
  const auto archive = folder.write("a.tar", kTar);
  unpack_archive(archive, kWanted, {folder.path() / "train", folder.path() / "test"});
  EXPECT_EQ(folder.read("train"), std::string(600, 'a'));
  EXPECT_EQ(folder.read("test"), "some test");
  std::filesystem::create_symlink(precious, folder.path() / "link");
  EXPECT_EQ(error_message<FileError>([&] {
              unpack_archive(archive, kWanted, {folder.path() / "other", folder.path() / "link"});
            }),
            (folder.path() / "link").string() + ": can not create: File exists");
  EXPECT_EQ(home.read("precious"), "mine");
}

}  // namespace
}  // namespace elliptical::data
