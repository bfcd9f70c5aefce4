// SPDX-License-Identifier: MIT
//
// D1: every kind of picture file, whole and broken.
#include "elliptical/data/image/codec.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <stdexcept>
#include <string_view>

#include "elliptical/base/errors.h"
#include "elliptical/data/image/codec_impl.h"
#include "tests/support/archives.h"
#include "tests/support/error_message.h"
#include "tests/support/pillow_pictures.h"

namespace elliptical::data {
namespace {

using test::error_message;
using test::pillow_bytes;
using test::pillow_picture;

std::vector<std::string> file_names() { return test::pillow_names("file "); }

std::string decode_error(std::span<const uint8_t> bytes, const DecodeLimits& limits = {}) {
  return error_message<DataError>([&] { decode_image(bytes, "a/b.jpg", limits); });
}

std::vector<uint8_t> to_bytes(std::string_view text) { return {text.begin(), text.end()}; }

TEST(DecodeImage, D1EveryKindHasPillowsPixels) {
  ASSERT_EQ(file_names().size(), 18u);
  for (const std::string& name : file_names()) {
    EXPECT_EQ(decode_image(pillow_bytes("file " + name), name), pillow_picture("pixels " + name))
        << name;
  }
}

TEST(DecodeImage, D1TruncatedAtEveryByteIsAnError) {
  for (const std::string& name : file_names()) {
    const std::vector<uint8_t> bytes = pillow_bytes("file " + name);
    for (size_t length = 0; length < bytes.size(); ++length) {
      EXPECT_NE(decode_error(std::span(bytes).first(length)), "no error") << name << " " << length;
    }
  }
}

TEST(DecodeImage, D1AnyBrokenByteIsAPictureOrAnError) {
  for (const std::string& name : file_names()) {
    std::vector<uint8_t> bytes = pillow_bytes("file " + name);
    const DecodeLimits small{.max_pixels = 1'000'000};
    for (uint8_t& byte : bytes) {
      const uint8_t old = byte;
      for (const int change : {0x01, 0x80, 0xFF}) {
        byte = static_cast<uint8_t>(old ^ change);
        decode_error(bytes, small);  // anything but a DataError fails
      }
      byte = old;
    }
  }
}

TEST(DecodeImage, D1WhatIsNoPictureIsNamed) {
  EXPECT_EQ(decode_error({}), "a/b.jpg: must be a JPEG or PNG picture, is empty");
  EXPECT_EQ(decode_error(to_bytes("hello, I am no picture")),
            "a/b.jpg: must be a JPEG or PNG picture, begins with \"hello, I am \"");
  EXPECT_EQ(decode_error(to_bytes("RIFF\x01\x02\x03\x04WEBP")),
            "a/b.jpg: must be a JPEG or PNG picture, begins with bytes 52 49 46 46");
  std::vector<uint8_t> jpeg = pillow_bytes("file rgb.jpg");
  jpeg.erase(jpeg.end() - 40, jpeg.end());
  EXPECT_EQ(decode_error(jpeg).find("a/b.jpg: must be a complete JPEG picture, is not: "), 0u);
  std::vector<uint8_t> png = pillow_bytes("file rgb.png");
  png.erase(png.end() - 40, png.end());
  EXPECT_EQ(decode_error(png),
            "a/b.jpg: must be a complete PNG picture, is not: the file ends too early");
}

/// A PNG file of that size that has no pixels; checksums as they must be.
std::vector<uint8_t> png_header(uint32_t width, uint32_t height) {
  std::vector<uint8_t> bytes = pillow_bytes("file rgb.png");
  const auto put = [&bytes](size_t at, uint32_t value) {
    for (size_t i = 0; i < 4; ++i) bytes[at + i] = static_cast<uint8_t>(value >> (24 - 8 * i));
  };
  put(16, width);
  put(20, height);
  uint32_t crc = ~0u;
  for (size_t i = 12; i < 29; ++i) {
    crc ^= bytes[i];
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc % 2 != 0 ? 0xEDB88320u : 0);
  }
  put(29, ~crc);
  return bytes;
}

TEST(DecodeImage, D1ClaimsAreCheckedBeforeMemoryIsTaken) {
  const std::string expected =
      "a/b.jpg: must have at most 64000000 pixels and sides of 65500, says it is 30000 x 30000";
  EXPECT_EQ(decode_error(png_header(30'000, 30'000)), expected);
  std::vector<uint8_t> jpeg = pillow_bytes("file rgb.jpg");
  const std::vector<uint8_t> start_of_frame = {0xFF, 0xC0};
  auto frame = std::search(jpeg.begin(), jpeg.end(), start_of_frame.begin(), start_of_frame.end());
  for (const int at : {5, 7}) {
    frame[at] = 30'000 >> 8;
    frame[at + 1] = 30'000 & 255;
  }
  EXPECT_EQ(decode_error(jpeg), expected);
  EXPECT_NE(decode_error(png_header(0, 9)), "no error");
  EXPECT_NE(decode_error(png_header(0x7FFFFFFF, 0x7FFFFFFF)), "no error");
  EXPECT_EQ(decode_error(pillow_bytes("file rgb.png"), {.max_pixels = 116}),
            "a/b.jpg: must have at most 116 pixels and sides of 65500, says it is 13 x 9");
  EXPECT_EQ(decode_error(pillow_bytes("file rgb.png"), {.max_pixels = 117}), "no error");
}

/// A grey progressive picture of size x size pixels, each of its scans empty but for the first: a
/// bit a block, then one code for 32,767 blocks at a time.
std::vector<uint8_t> many_scans(int size, int num_scans) {
  const int num_blocks = (size / 8) * (size / 8);
  std::vector<uint8_t> bytes = {0xFF, 0xD8, 0xFF, 0xDB, 0, 67, 0};
  bytes.insert(bytes.end(), 64, 1);
  const auto add = [&](std::initializer_list<int> more) {
    for (const int byte : more) bytes.push_back(static_cast<uint8_t>(byte));
  };
  add({0xFF, 0xC2, 0, 11, 8, size >> 8, size & 255, size >> 8, size & 255, 1, 1, 0x11, 0});
  for (const auto& [table, symbol] : {std::pair{0x00, 0x00}, {0x10, 0xE0}}) {
    add({0xFF, 0xC4, 0, 20, table, 1});
    bytes.insert(bytes.end(), 15, 0);
    add({symbol});
  }
  add({0xFF, 0xDA, 0, 8, 1, 1, 0, 0, 0, 0});
  bytes.insert(bytes.end(), (num_blocks + 7) / 8, 0);
  for (int scan = 1; scan < num_scans; ++scan) {
    const int low = 13 - (scan - 1) % 14, high = low == 13 ? 0 : low + 1;
    const int place = 1 + (scan - 1) / 14;
    add({0xFF, 0xDA, 0, 8, 1, 1, 0, place, place, high << 4 | low});
    for (int done = 0; done < num_blocks; done += 16384) add({0, 0});  // runs of 16,384 blocks
  }
  add({0xFF, 0xD9});
  return bytes;
}

TEST(DecodeImage, D1PassesOverThePixelsAreLimited) {
  const Image image = decode_image(many_scans(64, 14 * 30), "many.jpg");
  EXPECT_EQ(image.width, 64);
  const DecodeLimits limits{.max_pixels = 64 * 64, .max_passes = 16};
  EXPECT_EQ(decode_error(many_scans(64, 16), limits), "no error");
  EXPECT_EQ(decode_error(many_scans(64, 17), limits),
            "a/b.jpg: must have at most 16 scans of 4096 pixels, has 17");
  EXPECT_EQ(decode_error(many_scans(64, 501)),
            "a/b.jpg: must have at most 500 scans of 4096 pixels, has 501");
  // 64 million pixels and 840 scans: refused before the first one is read, 22 seconds otherwise.
  EXPECT_EQ(decode_error(many_scans(8000, 840)),
            "a/b.jpg: must have at most 16 scans of 64000000 pixels, has 840");
  // What only looks like scans, in a comment or a thumbnail, is none.
  std::vector<uint8_t> bytes = many_scans(64, 16);
  const auto comment = to_bytes(std::string_view("\xFF\xFE\0\x08\xFF\xDA\xFF\xDA\0\0", 10));
  bytes.insert(bytes.begin() + 2, comment.begin(), comment.end());
  EXPECT_EQ(decode_error(bytes, limits), "no error");
}

/// A chunk of a PNG file with its length and checksum.
std::string png_chunk(const std::string& type, const std::string& contents) {
  const auto big = [](uint64_t value) {
    std::string bytes;
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift);
    return bytes;
  };
  const std::string body = type + contents;
  return big(contents.size()) + body +
         big(crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size())));
}

TEST(DecodeImage, D1WhatAPictureDoesNotNeedIsNotUnpacked) {
  // Text that unpacks to a gigabyte: 5.8 seconds when it was.
  const std::string packed = test::deflated(std::string(7'900'000, 'a'), 15);
  const std::string text = png_chunk("zTXt", std::string("k\0\0", 3) + packed),
                    profile = png_chunk("iCCP", std::string("p\0\0", 3) + packed),
                    words = png_chunk("iTXt", std::string("k\0\1\0\0\0", 6) + packed);
  std::string file = "\x89PNG\r\n\x1A\n" +
                     png_chunk("IHDR", std::string("\0\0\0\1\0\0\0\1\x8\2\0\0\0", 13)) + profile;
  for (int i = 0; i < 60; ++i) file += text;
  file += png_chunk("IDAT", test::deflated(std::string("\0abc", 4), 15));
  for (int i = 0; i < 60; ++i) file += words;
  file += png_chunk("IEND", "");
  const std::clock_t start = std::clock();
  const Image image = decode_image(to_bytes(file), "text.png");
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  EXPECT_EQ(image.pixels, to_bytes("abc"));
  EXPECT_LT(seconds, 1.0) << "reading a megabyte takes milliseconds, with sanitizers too";
}

TEST(DecodeImage, StrayBytesBetweenSegmentsAreNoError) {
  std::vector<uint8_t> jpeg = pillow_bytes("file rgb.jpg");
  jpeg.insert(jpeg.end() - 2, {0x12, 0x34, 0x56});
  EXPECT_EQ(decode_image(jpeg, "j"), pillow_picture("pixels rgb.jpg"));
}

TEST(Oriented, TurnsEachWay) {
  Image image(3, 2);  // 0 1 2 / 3 4 5
  for (uint8_t i = 0; i < 6; ++i) image.at(i / 3, i % 3)[0] = i;
  const std::vector<std::vector<int>> expected = {
      {0, 1, 2, 3, 4, 5}, {2, 1, 0, 5, 4, 3}, {5, 4, 3, 2, 1, 0}, {3, 4, 5, 0, 1, 2},
      {0, 3, 1, 4, 2, 5}, {3, 0, 4, 1, 5, 2}, {5, 2, 4, 1, 3, 0}, {2, 5, 1, 4, 0, 3}};
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const Image result = oriented(image, orientation);
    EXPECT_EQ(result.width, orientation < 5 ? 3 : 2);
    std::vector<int> values;
    for (size_t i = 0; i < 6; ++i) values.push_back(result.pixels[3 * i]);
    EXPECT_EQ(values, expected[orientation - 1]) << orientation;
  }
  EXPECT_EQ(oriented(image, 9), image);
}

TEST(TiffOrientation, ReadsBothByteOrders) {
  const std::string little("II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0", 22);
  const std::string big("MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0", 22);
  for (const std::string& text : {little, big}) {
    EXPECT_EQ(tiff_orientation(to_bytes(text)), 6);
    EXPECT_EQ(tiff_orientation(to_bytes(text.substr(0, 18))), 1);
  }
  std::string wrong = little;
  wrong[18] = 9;
  EXPECT_EQ(tiff_orientation(to_bytes(wrong)), 1);
  wrong = little;
  wrong.replace(4, 4, "\xFF\xFF\xFF\xFF");  // the directory is beyond the end
  EXPECT_EQ(tiff_orientation(to_bytes(wrong)), 1);
}

TEST(EncodeJpeg, HasPillowsPixels) {
  const Image source = pillow_picture("source");
  for (const int quality : {7, 25, 85, 95}) {
    EXPECT_EQ(decode_image(encode_jpeg(source, quality), "j"),
              pillow_picture("jpeg " + std::to_string(quality)))
        << quality;
  }
}

TEST(EncodePng, LosesNothing) {
  const Image source = pillow_picture("source");
  EXPECT_EQ(decode_image(encode_png(source), "p"), source);
  EXPECT_EQ(decode_image(encode_png(Image(1, 1, 200)), "p"), Image(1, 1, 200));
}

TEST(Encode, RefusesWhatItCanNotWrite) {
  EXPECT_EQ(error_message<std::invalid_argument>([] { encode_jpeg(Image(2, 2), 0); }),
            "encode_jpeg: quality must be 1 to 100, got 0");
  EXPECT_EQ(error_message<std::invalid_argument>([] { encode_jpeg(Image(), 50); }),
            "encode_jpeg: sides must be 1 to 65500, got 0 x 0");
  EXPECT_EQ(error_message<std::invalid_argument>([] {
              encode_png(Image());
            }).find("encode_png: the picture is empty"),
            0u);
}

}  // namespace
}  // namespace elliptical::data
