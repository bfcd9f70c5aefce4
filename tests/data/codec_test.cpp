// SPDX-License-Identifier: MIT
//
// D1: every kind of picture file, whole and broken.
#include "elliptical/data/image/codec.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <string_view>

#include "elliptical/base/errors.h"
#include "elliptical/data/image/codec_impl.h"
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
  jpeg.resize(jpeg.size() - 40);
  EXPECT_EQ(decode_error(jpeg).find("a/b.jpg: must be a complete JPEG picture, is not: "), 0u);
  std::vector<uint8_t> png = pillow_bytes("file rgb.png");
  png.resize(png.size() - 40);
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
