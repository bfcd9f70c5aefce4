// SPDX-License-Identifier: MIT
#include "elliptical/data/xz.h"

#include <gtest/gtest.h>

#include "elliptical/base/errors.h"
#include "tests/support/archives.h"
#include "tests/support/error_message.h"
#include "tests/support/temporary_folder.h"

namespace elliptical::data {
namespace {

using test::error_message;
using test::xz_packed;

TEST(Xz, GivesBackWhatWasPacked) {
  std::string text;
  for (int i = 0; i < 50'000; ++i) text += std::to_string(i * 7919 % 1000);
  for (const std::string& each : {text, std::string(), std::string(1 << 20, 'a')}) {
    EXPECT_EQ(unpack_xz(xz_packed(each), "f.xz", 1 << 21), each);
  }
}

TEST(Xz, RefusesMoreThanItMayHold) {
  EXPECT_EQ(error_message<DataError>(
                [] { unpack_xz(xz_packed(std::string(1 << 24, 'a')), "f.xz", 1000); }),
            "f.xz: must hold at most 1000 bytes, holds more");
}

TEST(Xz, CutOrDamagedAnywhereIsAnError) {
  const std::string packed = xz_packed("some text that is packed");
  for (size_t length = 0; length < packed.size(); ++length) {
    EXPECT_THROW(unpack_xz(packed.substr(0, length), "f.xz", 1000), DataError) << length;
    std::string damaged = packed;
    damaged[length] = static_cast<char>(damaged[length] ^ 0x10);
    EXPECT_THROW(unpack_xz(damaged, "f.xz", 1000), DataError) << length;
  }
  EXPECT_EQ(error_message<DataError>([&] { unpack_xz(packed + "more", "f.xz", 1000); }),
            "f.xz: must be one complete xz stream, is damaged or cut at byte " +
                std::to_string(packed.size()));
}

TEST(Xz, PlainFilesComeFirst) {
  const test::TemporaryFolder folder;
  folder.write("a.bin.xz", xz_packed("packed"));
  EXPECT_EQ(read_plain_or_xz(folder.path() / "a.bin", 100), "packed");
  EXPECT_TRUE(has_plain_or_xz(folder.path() / "a.bin"));
  folder.write("a.bin", "plain");
  EXPECT_EQ(read_plain_or_xz(folder.path() / "a.bin", 100), "plain");
  EXPECT_FALSE(has_plain_or_xz(folder.path() / "b.bin"));
  EXPECT_THROW(read_plain_or_xz(folder.path() / "b.bin", 100), DataError);
}

}  // namespace
}  // namespace elliptical::data
