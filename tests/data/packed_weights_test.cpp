// SPDX-License-Identifier: MIT
#include "elliptical/data/packed_weights.h"

#include <gtest/gtest.h>

#include "elliptical/base/errors.h"
#include "tests/support/archives.h"
#include "tests/support/error_message.h"
#include "tests/support/temporary_folder.h"

namespace elliptical::data {
namespace {

using test::error_message;

const std::string kHeader = "name\tshape\toffset_elements\tnum_elements\n";

std::string refusal(const std::string& lines, int64_t num_values = 10) {
  return error_message<DataError>([&] { parse_packed_weights(kHeader + lines, "t", num_values); });
}

TEST(PackedWeights, ReadsATable) {
  const auto tensors = parse_packed_weights(kHeader + "a.b\t2x3\t0\t6\nc\t4\t6\t4\n", "t", 10);
  ASSERT_EQ(tensors.size(), 2u);
  EXPECT_EQ(tensors[0].name, "a.b");
  EXPECT_EQ(tensors[0].shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(tensors[1].offset, 6);
  EXPECT_EQ(tensors[1].num_elements, 4);
  // The last line may end without a line feed.
  EXPECT_EQ(parse_packed_weights(kHeader + "c\t10\t0\t10", "t", 10).size(), 1u);
}

TEST(PackedWeights, NamesTheLineThatIsWrong) {
  EXPECT_EQ(error_message<DataError>([] { parse_packed_weights("", "t", 0); }),
            "t:1: the first line must be \"name shape offset_elements num_elements\" with tabs");
  const std::string form = "a line must be a name, a shape and two counts with tabs between them";
  for (const char* line : {"a", "a\t2\t0", "a\t2\t0\t2\t3", "\t2\t0\t2", "a\t2\t-0\t2",
                           "a\t2\t0\t 2", "a\t2\t0\t99999999999999999999", "\xff\t2\t0\t2", ""}) {
    EXPECT_EQ(refusal(std::string(line) + "\n"), "t:2: " + form) << line;
  }
  EXPECT_EQ(refusal("a\t5\t0\t5\na\t5\t5\t5\n"), "t:3: holds a once more");
  EXPECT_EQ(refusal("a\t5\t1\t5\n"),
            "t:2: a tensor must start at element 0 and end within 10, got 1 and 5 elements");
  EXPECT_EQ(refusal("a\t11\t0\t11\n"),
            "t:2: a tensor must start at element 0 and end within 10, got 0 and 11 elements");
  EXPECT_EQ(refusal("a\t2x3\t0\t5\n"), "t:2: a shape must give num_elements, 5, got \"2x3\"");
  EXPECT_EQ(refusal("a\t5x\t0\t5\n"), "t:2: a shape must give num_elements, 5, got \"5x\"");
  EXPECT_EQ(refusal("a\t\t0\t5\n"), "t:2: a shape must give num_elements, 5, got \"\"");
  const std::string sizes = "t:2: a shape must be sizes with x between them, at most 8, got \"";
  EXPECT_EQ(refusal("a\t5x0\t0\t5\n"), sizes + "5x0\"");
  EXPECT_EQ(refusal("a\t5y1\t0\t5\n"), sizes + "5y1\"");
  EXPECT_EQ(refusal("a\t1x1x1x1x1x1x1x1x5\t0\t5\n"), sizes + "1x1x1x1x1x1x1x1x5\"");
  EXPECT_EQ(refusal("a\t4000000000x4000000000\t0\t5\n"), sizes + "4000000000x4000000000\"");
  EXPECT_EQ(refusal("a\t5\t0\t5\n"),
            "t:2: the tensors must be all 10 elements of the file of weights, are 5");
}

TEST(PackedWeights, ReadsAFolder) {
  const test::TemporaryFolder folder;
  EXPECT_FALSE(is_packed_weights(folder.path()));
  folder.write("index.tsv", kHeader + "a\t1x2\t0\t2\n");
  EXPECT_TRUE(is_packed_weights(folder.path()));
  const std::string place = folder.path().string();
  EXPECT_EQ(error_message<DataError>([&] { read_packed_weights(folder.path()); }),
            place + ": must hold one file of weights, .f16 or .f16.xz, holds 0");
  folder.write("w.f16", "123");
  EXPECT_EQ(error_message<DataError>([&] { read_packed_weights(folder.path()); }),
            place + "/w.f16: must be half floats of two bytes, has 3 bytes");
  folder.write("w.f16", "1234");
  const PackedWeights weights = read_packed_weights(folder.path());
  EXPECT_EQ(weights.bytes, "1234");
  EXPECT_EQ(weights.tensors.at(0).shape, (std::vector<int64_t>{1, 2}));
  folder.write("other.f16.xz", "");
  EXPECT_EQ(error_message<DataError>([&] { read_packed_weights(folder.path()); }),
            place + ": must hold one file of weights, .f16 or .f16.xz, holds 2");
}

TEST(PackedWeights, S3NoMoreIsUnpackedThanTheTableNames) {
  const test::TemporaryFolder folder;
  folder.write("index.tsv", kHeader + "a\t1x2\t0\t2\n");
  folder.write("w.f16.xz", test::xz_packed(std::string(1 << 20, '\0')));
  const std::string place = folder.path().string();
  EXPECT_EQ(error_message<DataError>([&] { read_packed_weights(folder.path()); }),
            place + "/w.f16.xz: must hold at most 4 bytes, holds more");
  folder.write("w.f16", "12345");
  EXPECT_EQ(error_message<DataError>([&] { read_packed_weights(folder.path()); }),
            place + "/w.f16: must have at most 4 bytes, has more");
}

}  // namespace
}  // namespace elliptical::data
