// SPDX-License-Identifier: MIT
#include "elliptical/base/safetensors.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "elliptical/base/errors.h"
#include "tests/support/error_message.h"
#include "tests/support/temporary_folder.h"

namespace elliptical {
namespace {

using test::error_message;

std::string length_bytes(uint64_t length) {
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes;
}

/// A file with that header and so many bytes of data.
std::string file_of(const std::string& header, size_t data_bytes) {
  return length_bytes(header.size()) + header + std::string(data_bytes, 'd');
}

SafetensorsHeader parse(const std::string& file) {
  return parse_safetensors_header(std::as_bytes(std::span(file)), file.size(), "f");
}

std::string error_of(const std::string& file) {
  return error_message<DataError>([&] { parse(file); });
}

/// The message for a file with this header and data.
std::string header_error(const std::string& header, size_t data_bytes = 0) {
  return error_of(file_of(header, data_bytes));
}

/// `{"a":{...}}` with these fields.
std::string entry_error(const std::string& fields, size_t data_bytes = 0) {
  return header_error("{\"a\":{" + fields + "}}", data_bytes);
}

std::string entry(const std::string& name,
                  const std::string& shape,
                  uint64_t begin,
                  uint64_t end,
                  const std::string& type = "U8") {
  return "\"" + name + "\":{\"dtype\":\"" + type + "\",\"shape\":[" + shape +
         "],\"data_offsets\":[" + std::to_string(begin) + "," + std::to_string(end) + "]}";
}

TEST(Safetensors, ReadsAHeader) {
  const std::string header =
      "{ \"__metadata__\" : {\"k\":\"v\", \"\\u00e9\\n\":\"\\ud83d\\ude00\"},\n" +
      entry("b", "2, 3", 4, 28, "F32") + " ,\t" + entry("a", "", 0, 4, "I32") + ", " +
      entry("empty", "3,0", 28, 28, "F64") + "}   ";
  const SafetensorsHeader parsed = parse(file_of(header, 28));
  ASSERT_EQ(parsed.tensors.size(), 3u);
  EXPECT_EQ(parsed.tensors[0].name, "a");
  EXPECT_EQ(parsed.tensors[0].num_elements(), 1);
  EXPECT_EQ(parsed.tensors[1].name, "b");
  EXPECT_EQ(parsed.tensors[1].shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(parsed.tensors[1].type, ElementType::kF32);
  EXPECT_EQ(parsed.tensors[1].num_elements(), 6);
  EXPECT_EQ(parsed.tensors[2].num_elements(), 0);
  EXPECT_EQ(parsed.metadata.at("k"), "v");
  EXPECT_EQ(parsed.metadata.at("\xC3\xA9\n"), "\xF0\x9F\x98\x80");
  EXPECT_EQ(parsed.data_offset, 8 + header.size());
  EXPECT_TRUE(parse(file_of("{}", 0)).tensors.empty());
}

TEST(SafetensorsHeader, S1HeaderLength) {
  EXPECT_EQ(error_of(""), "f: must start with 8 bytes of header length, has 0 bytes (offset 0)");
  EXPECT_EQ(error_of("1234567"),
            "f: must start with 8 bytes of header length, has 7 bytes (offset 0)");
  EXPECT_EQ(error_of(length_bytes(0)), "f: header must start with { (offset 8)");
  EXPECT_EQ(error_of(length_bytes(0) + "{}"), "f: header must start with { (offset 8)");
  EXPECT_EQ(error_of(length_bytes(1) + "{"), "f: expected \" (offset 9)");
  EXPECT_EQ(error_of(length_bytes(3) + "{}"),
            "f: header claims 3 bytes, more than the file has (offset 0)");
  for (const uint64_t length : {uint64_t{100'000'001}, uint64_t{1} << 63, ~uint64_t{0}}) {
    EXPECT_EQ(error_of(length_bytes(length) + "{}"),
              "f: header must have at most 100000000 bytes, claims " + std::to_string(length) +
                  " (offset 0)");
  }
}

TEST(SafetensorsHeader, S1NotJson) {
  EXPECT_EQ(header_error("[]"), "f: header must start with { (offset 8)");
  EXPECT_EQ(header_error(" {}"), "f: header must start with { (offset 8)");
  EXPECT_EQ(header_error("<html>"), "f: header must start with { (offset 8)");
  EXPECT_EQ(header_error("{\"\xFF\":1}"), "f: header must be UTF-8 (offset 10)");
  EXPECT_EQ(header_error("{} x"), "f: text after the header's end (offset 11)");
  EXPECT_EQ(header_error("{}}"), "f: text after the header's end (offset 10)");
  EXPECT_EQ(header_error(std::string("{}\0", 3)), "f: text after the header's end (offset 10)");
  EXPECT_EQ(header_error("{\"a\""), "f: expected : (offset 12)");
  EXPECT_EQ(header_error("{\"a"), "f: text without end (offset 11)");
  EXPECT_EQ(header_error("{\"a\n\":"), "f: control character in text (offset 11)");
  EXPECT_EQ(header_error("{\"\\x\":"), "f: unknown escape (offset 11)");
  EXPECT_EQ(header_error("{\"\\u12G4\":"), "f: \\u must have 4 hex digits (offset 12)");
  EXPECT_EQ(header_error("{\"\\u-123\":"), "f: \\u must have 4 hex digits (offset 12)");
  EXPECT_EQ(header_error("{\"\\ud800\":"), "f: half of a surrogate pair (offset 16)");
  EXPECT_EQ(header_error("{\"\\udc00\":"), "f: half of a surrogate pair (offset 16)");
  EXPECT_EQ(header_error("{\"\\"), "f: unknown escape (offset 10)");
  EXPECT_EQ(header_error("{" + entry("a", "", 0, 1) + ",}", 1),
            "f: comma before the end (offset 60)");
}

TEST(SafetensorsHeader, S1DeepNesting) {
  EXPECT_EQ(header_error("{\"a\":" + std::string(1'000'000, '[')), "f: expected { (offset 13)");
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  EXPECT_EQ(header_error(objects), "f: unknown field \"a\" of tensor \"a\" (offset 14)");
  EXPECT_EQ(header_error("{\"__metadata__\":" + objects), "f: expected \" (offset 29)");
}

TEST(SafetensorsHeader, S1DuplicateKeys) {
  EXPECT_EQ(header_error("{" + entry("a", "1", 0, 1) + "," + entry("a", "1", 1, 2) + "}", 2),
            "f: tensor \"a\" comes twice");
  EXPECT_EQ(header_error("{\"__metadata__\":{},\"__metadata__\":{}}"),
            "f: key \"__metadata__\" comes twice (offset 27)");
  EXPECT_EQ(header_error("{\"__metadata__\":{\"k\":\"1\",\"k\":\"2\"}}"),
            "f: key \"k\" comes twice (offset 33)");
  EXPECT_EQ(entry_error("\"dtype\":\"U8\",\"dtype\":\"U8\""),
            "f: dtype comes twice in tensor \"a\" (offset 35)");
}

TEST(SafetensorsHeader, S1Fields) {
  const std::string must = "f: tensor \"a\" must have dtype, shape and data_offsets (offset 13)";
  EXPECT_EQ(entry_error(""), must);
  EXPECT_EQ(entry_error("\"dtype\":\"U8\",\"shape\":[]"), must);
  EXPECT_EQ(entry_error("\"dtype\":\"U8\",\"data_offsets\":[0,1]", 1), must);
  EXPECT_EQ(entry_error("\"shape\":[],\"data_offsets\":[0,1]", 1), must);
  EXPECT_EQ(entry_error("\"more\":1"), "f: unknown field \"more\" of tensor \"a\" (offset 14)");
  EXPECT_EQ(
      entry_error("\"dtype\":\"F31\""),
      "f: dtype: unknown \"F31\", known: BOOL, U8, I8, I16, U16, F16, BF16, I32, U32, F32, I64, "
      "U64, F64 (offset 22)");
  EXPECT_EQ(entry_error("\"dtype\":3"), "f: expected \" (offset 22)");
  EXPECT_EQ(entry_error("\"shape\":3"), "f: expected [ (offset 22)");
  EXPECT_EQ(entry_error("\"data_offsets\":[0]"), "f: expected , (offset 31)");
  EXPECT_EQ(entry_error("\"data_offsets\":[0,1,2]"), "f: expected ] (offset 33)");
  EXPECT_EQ(header_error("{\"__metadata__\":{\"k\":1}}"), "f: expected \" (offset 29)");
  EXPECT_EQ(header_error("{\"__metadata__\":null}"), "f: expected { (offset 24)");
}

TEST(SafetensorsHeader, S1Numbers) {
  for (const char* number : {"-1", "1.5", "1e3", "1E3", "01", "+1", "", "\"1\"", "true", "[1]"}) {
    const std::string fields = std::string("\"shape\":[") + number + "x]";
    EXPECT_NE(entry_error(fields), "no error") << number;
  }
  EXPECT_EQ(entry_error("\"shape\":[-1]"), "f: must be a whole number >= 0 (offset 23)");
  EXPECT_EQ(entry_error("\"shape\":[2.0]"), "f: must be a whole number >= 0 (offset 23)");
  EXPECT_EQ(entry_error("\"shape\":[9223372036854775808]"), "f: number too large (offset 23)");
  EXPECT_EQ(entry_error("\"shape\":[18446744073709551617]"), "f: number too large (offset 23)");
  EXPECT_EQ(entry_error("\"shape\":[" + std::string(100'000, '9') + "]"),
            "f: number too large (offset 23)");
  std::string dimensions = "1";
  for (int i = 0; i < 64; ++i) dimensions += ",1";
  EXPECT_EQ(entry_error("\"shape\":[" + dimensions + "]"),
            "f: at most 64 dimensions are allowed (offset 151)");
}

TEST(SafetensorsHeader, S1Sizes) {
  const auto error = [](const std::string& entries, size_t data_bytes) {
    return header_error("{" + entries + "}", data_bytes);
  };
  EXPECT_EQ(error(entry("a", "1", 2, 1), 2),
            "f: data_offsets of tensor \"a\" must not decrease, got [2, 1] (offset 13)");
  EXPECT_EQ(error(entry("a", "2", 0, 1), 1),
            "f: tensor \"a\" must have 2 bytes by dtype and shape, has 1 (offset 13)");
  EXPECT_EQ(error(entry("a", "", 0, 4), 4),
            "f: tensor \"a\" must have 1 bytes by dtype and shape, has 4 (offset 13)");
  EXPECT_EQ(error(entry("a", "4", 0, 4), 3),
            "f: tensor \"a\" ends beyond the file (offset 0 of the data)");
  EXPECT_EQ(error(entry("a", "4", 0, 4) + "," + entry("b", "4", 3, 7), 7),
            "f: tensor \"b\" overlaps another (offset 3 of the data)");
  EXPECT_EQ(error(entry("a", "4", 0, 4) + "," + entry("b", "4", 0, 4), 4),
            "f: tensor \"b\" overlaps another (offset 0 of the data)");
  EXPECT_EQ(error(entry("a", "4", 0, 4) + "," + entry("b", "4", 5, 9), 9),
            "f: tensor \"b\" leaves a gap before it (offset 5 of the data)");
  EXPECT_EQ(error(entry("a", "4", 1, 5), 5),
            "f: tensor \"a\" leaves a gap before it (offset 1 of the data)");
  EXPECT_EQ(error(entry("a", "4", 0, 4), 5), "f: tensors must cover all 5 bytes of data, cover 4");
  EXPECT_EQ(header_error("{}", 1), "f: tensors must cover all 1 bytes of data, cover 0");
}

TEST(SafetensorsHeader, S1EmptyTensorsMayShareABorderButNotLieInside) {
  const std::string data = entry("a", "4", 0, 4);
  EXPECT_EQ(
      header_error("{" + data + "," + entry("b", "0", 4, 4) + "," + entry("c", "0", 4, 4) + "}", 4),
      "no error");
  EXPECT_EQ(header_error("{" + data + "," + entry("b", "0", 0, 0) + "}", 4), "no error");
  EXPECT_EQ(header_error("{" + data + "," + entry("b", "0", 2, 2) + "}", 4),
            "f: tensor \"b\" overlaps another (offset 2 of the data)");
  EXPECT_EQ(header_error("{" + data + "," + entry("b", "0", 9, 9) + "}", 4),
            "f: tensor \"b\" leaves a gap before it (offset 9 of the data)");
}

TEST(SafetensorsHeader, S1ProductOfTheShapeOverflows) {
  const std::string too_large = "f: shape of tensor \"a\" is too large (offset 13)";
  // The published proof against another reader: the product is 4 modulo 2^64.
  EXPECT_EQ(header_error("{" + entry("a", "4194305,4194305,211106198978564", 0, 4) + "}", 4),
            too_large);
  EXPECT_EQ(
      header_error("{" + entry("a", "4194305,4194305,211106198978564", 0, 16, "F32") + "}", 16),
      too_large);
  EXPECT_EQ(header_error("{" + entry("a", "4611686018427387904,4", 0, 0) + "}"), too_large);
  EXPECT_EQ(header_error("{" + entry("a", "0,4611686018427387904,4", 0, 0) + "}"), too_large);
  EXPECT_EQ(header_error("{" + entry("a", "9223372036854775807", 0, 8, "F64") + "}", 8), too_large);
}

TEST(SafetensorsHeader, S1AMillionTensors) {
  // Names are compared when all are read, and so many are not.
  const std::string tensor = entry("t", "0", 0, 0);
  std::string header = "{" + tensor;
  for (int i = 1; i < 1'000'000; ++i) header.append(",").append(tensor);
  EXPECT_EQ(header_error(header + "}").substr(0, 38), "f: at most 100000 tensors are allowed ");
}

TEST(SafetensorsHeader, S1AMillionEntriesOfMetadata) {
  std::string header = R"({"__metadata__":{"0":"")";
  for (int i = 1; i < 1'000'000; ++i) header += ",\"" + std::to_string(i) + "\":\"\"";
  EXPECT_EQ(header_error(header + "}}").substr(0, 48),
            "f: at most 10000 entries of metadata are allowed");
}

TEST(SafetensorsHeader, S1Names) {
  // A name is a name, not a path: slashes and dots are harmless and stay.
  for (const std::string name : {"a/b", "../../etc/passwd", "..", "\xC3\xA9"}) {
    const SafetensorsHeader header = parse(file_of("{" + entry(name, "1", 0, 1) + "}", 1));
    EXPECT_EQ(header.tensors[0].name, name);
  }
  const std::string must = "f: name of a tensor must have 1 to 4096 bytes and no NUL, got ";
  EXPECT_EQ(header_error("{" + entry("", "1", 0, 1) + "}", 1), must + "\"\" (offset 9)");
  EXPECT_EQ(header_error("{" + entry("a\\u0000b", "1", 0, 1) + "}", 1),
            must + "\"a?b\" (offset 9)");
  EXPECT_EQ(header_error("{" + entry(std::string(1 << 20, 'n'), "1", 0, 1) + "}", 1),
            must + "\"" + std::string(60, 'n') + "...\" (offset 9)");
  EXPECT_EQ(header_error("{" + entry(std::string(4096, 'n'), "1", 0, 1) + "}", 1), "no error");
}

class SafetensorsFiles : public testing::Test {
 protected:
  std::filesystem::path write(const std::vector<TensorBytes>& tensors,
                              const std::map<std::string, std::string>& metadata = {}) {
    std::string bytes;
    write_safetensors(tensors, metadata, [&](std::span<const std::byte> piece) {
      bytes.append(reinterpret_cast<const char*>(piece.data()), piece.size());
    });
    return folder.write("f.safetensors", bytes);
  }
  std::string open_error(const std::filesystem::path& path) {
    return error_message<DataError>([&] { SafetensorsFile file(path); });
  }
  test::TemporaryFolder folder;
  std::vector<float> values = {1, 2, 3, 4, 5, 6};
};

TEST_F(SafetensorsFiles, ReadWhatWasWritten) {
  const std::vector<int64_t> numbers = {7, -8};
  const auto path =
      write({{"w\"\\\n\xC3\xA9", ElementType::kF32, {2, 3}, std::as_bytes(std::span(values))},
             {"none", ElementType::kF64, {0, 5}, {}},
             {"n", ElementType::kI64, {2}, std::as_bytes(std::span(numbers))}},
            {{"key", "value \x01"}});
  const SafetensorsFile file(path);
  EXPECT_EQ(file.header().metadata.at("key"), "value \x01");
  EXPECT_EQ(file.header().data_offset % 8, 0u);
  EXPECT_EQ(file.find("other"), nullptr);
  const TensorEntry* tensor = file.find("w\"\\\n\xC3\xA9");
  ASSERT_NE(tensor, nullptr);
  EXPECT_EQ(tensor->shape, (std::vector<int64_t>{2, 3}));
  std::vector<float> read(6);
  file.read(*tensor, std::as_writable_bytes(std::span(read)));
  EXPECT_EQ(read, values);
  std::vector<int64_t> more(2);
  file.read(*file.find("n"), std::as_writable_bytes(std::span(more)));
  EXPECT_EQ(more, numbers);
  file.read(*file.find("none"), {});
  EXPECT_THROW(file.read(*file.find("n"), {}), std::invalid_argument);
}

TEST_F(SafetensorsFiles, WriterRefusesWhatTheReaderWould) {
  const auto bytes = std::as_bytes(std::span(values));
  EXPECT_THROW(write({{"a", ElementType::kF32, {5}, bytes}}), std::invalid_argument);
  EXPECT_THROW(write({{"", ElementType::kF32, {6}, bytes}}), std::invalid_argument);
  EXPECT_THROW(write({{"__metadata__", ElementType::kF32, {6}, bytes}}), std::invalid_argument);
  EXPECT_THROW(write({{"a\xFF", ElementType::kF32, {6}, bytes}}), std::invalid_argument);
  EXPECT_THROW(write({{"a", ElementType::kF32, {6}, bytes}, {"a", ElementType::kF32, {6}, bytes}}),
               std::invalid_argument);
}

TEST_F(SafetensorsFiles, S1CutAnywhereIsRefused) {
  const std::string bytes = [&] {
    write({{"a", ElementType::kF32, {6}, std::as_bytes(std::span(values))}});
    return folder.read("f.safetensors");
  }();
  for (size_t length = 0; length < bytes.size(); ++length) {
    const auto path = folder.write("cut", std::string_view(bytes).substr(0, length));
    EXPECT_EQ(open_error(path).rfind(path.string() + ": ", 0), 0u) << length;
  }
  EXPECT_EQ(open_error(folder.write("cut", bytes)), "no error");
}

TEST_F(SafetensorsFiles, S1HugeClaimsNeedNoMemory) {
  // A sparse file that is as long as it claims: only the header would be read.
  const auto path = folder.write("big", length_bytes(99'999'999) + "{");
  std::filesystem::resize_file(path, uint64_t{1} << 40);
  EXPECT_EQ(open_error(path), path.string() + ": expected \" (offset 9)");
}

TEST_F(SafetensorsFiles, S2FileThatShrinksIsAnError) {
  const auto path = write({{"a", ElementType::kF32, {6}, std::as_bytes(std::span(values))}});
  const SafetensorsFile file(path);
  std::filesystem::resize_file(path, file.header().data_offset + 8);
  std::vector<float> read(6);
  EXPECT_EQ(error_message<DataError>([&] {
              file.read(file.header().tensors[0], std::as_writable_bytes(std::span(read)));
            }),
            path.string() + ": became shorter while it was read (offset " +
                std::to_string(file.header().data_offset + 8) + ")");
}

TEST_F(SafetensorsFiles, OtherThingsThanFilesAreRefused) {
  EXPECT_EQ(open_error(folder.path()), folder.path().string() + ": must be a regular file");
  EXPECT_EQ(open_error(folder.path() / "none"),
            (folder.path() / "none").string() + ": can not open: No such file or directory");
}

RC_GTEST_PROP(SafetensorsProperties, FlippedBytesNeverCrash, (const std::vector<uint8_t>& flips)) {
  std::string bytes = file_of("{\"__metadata__\":{\"k\":\"v\"}," + entry("a", "2,2", 0, 4) + "," +
                                  entry("b", "3", 4, 16, "F32") + "}",
                              16);
  for (size_t i = 0; i + 1 < flips.size(); i += 2) bytes[flips[i] % bytes.size()] ^= flips[i + 1];
  try {
    const SafetensorsHeader header = parse(bytes);
    RC_ASSERT(header.data_offset <= bytes.size());
  } catch (const DataError&) {
  }
}

}  // namespace
}  // namespace elliptical
