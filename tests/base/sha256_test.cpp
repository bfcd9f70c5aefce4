// SPDX-License-Identifier: MIT
#include "elliptical/base/sha256.h"

#include <gtest/gtest.h>

#include <vector>

#include "elliptical/base/errors.h"
#include "elliptical/base/sha256_impl.h"
#include "tests/support/temporary_folder.h"

namespace elliptical {
namespace {

TEST(Sha256, KnowsTheExamplesOfTheStandard) {
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256_hex(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, PiecesMakeNoDifference) {
  for (size_t length = 0; length < 200; ++length) {
    std::string text;
    for (size_t i = 0; i < length; ++i) text += static_cast<char>(i * 37);
    const std::string expected = sha256_hex(text);
    for (const size_t piece : {size_t{1}, size_t{7}, size_t{63}, size_t{64}, size_t{65}}) {
      Sha256 hash;
      for (size_t i = 0; i < length; i += piece)
        hash.update(std::string_view(text).substr(i, piece));
      EXPECT_EQ(hash.hex(), expected) << length << " in pieces of " << piece;
    }
  }
}

TEST(Sha256, InstructionsOfTheCpuGiveTheSame) {
  if (!sha256_x86_available()) GTEST_SKIP() << "this CPU has no SHA instructions";
  std::vector<std::byte> blocks(64 * 5);
  for (size_t i = 0; i < blocks.size(); ++i) blocks[i] = static_cast<std::byte>(i * i * 7 + i);
  for (size_t count = 0; count <= 5; ++count) {
    std::array<uint32_t, 8> plain = {1, 2, 3, 4, 5, 6, 7, 0xFFFFFFFF}, fast = plain;
    sha256_compress_plain(plain, blocks.data(), count);
    sha256_compress_x86(fast, blocks.data(), count);
    EXPECT_EQ(plain, fast) << count;
  }
}

TEST(Sha256, HashesFiles) {
  const test::TemporaryFolder folder;
  const std::string text(3 << 20, 'x');
  EXPECT_EQ(sha256_of_file(folder.write("f", text)), sha256_hex(text));
  try {
    sha256_of_file(folder.path() / "none");
    FAIL();
  } catch (const DataError& error) {
    EXPECT_EQ(std::string(error.what()),
              (folder.path() / "none").string() + ": can not open: No such file or directory");
  }
}

}  // namespace
}  // namespace elliptical
