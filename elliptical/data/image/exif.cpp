// SPDX-License-Identifier: MIT
//
// EXIF, as far as it says how a picture is to be turned. It is advice: what can not be read is
// ignored, as every viewer does.
#include <algorithm>
#include <string_view>

#include "elliptical/data/image/codec_impl.h"

namespace elliptical::data {
namespace {

/// Integers of a TIFF block; 0 beyond its end.
struct TiffReader {
  std::span<const uint8_t> bytes;
  bool big_endian;

  uint32_t read(uint64_t offset, int size) const {
    if (offset + size > bytes.size()) return 0;
    uint32_t value = 0;
    for (int i = 0; i < size; ++i) {
      value = value << 8 | bytes[offset + (big_endian ? i : size - 1 - i)];
    }
    return value;
  }
};

bool has_text(std::span<const uint8_t> bytes, std::string_view text) {
  return bytes.size() >= text.size() && std::equal(text.begin(), text.end(), bytes.begin());
}

}  // namespace

int tiff_orientation(std::span<const uint8_t> tiff) {
  using namespace std::string_view_literals;
  const bool big_endian = has_text(tiff, "MM\0*"sv);
  if (!big_endian && !has_text(tiff, "II*\0"sv)) return 1;
  const TiffReader reader{tiff, big_endian};
  const uint64_t directory = reader.read(4, 4);
  const uint32_t num_entries = reader.read(directory, 2);
  for (uint32_t i = 0; i < num_entries; ++i) {
    const uint64_t entry = directory + 2 + uint64_t{12} * i;
    constexpr uint32_t kOrientation = 0x0112, kShort = 3;
    if (reader.read(entry, 2) != kOrientation) continue;
    const uint32_t value = reader.read(entry + 2, 2) == kShort ? reader.read(entry + 8, 2) : 0;
    return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

int jpeg_orientation(std::span<const uint8_t> jpeg) {
  using namespace std::string_view_literals;
  // Segments: FF, marker, two bytes of length that count themselves. The picture starts with SOS.
  size_t offset = 2;
  while (offset + 4 <= jpeg.size() && jpeg[offset] == 0xFF) {
    const uint8_t marker = jpeg[offset + 1];
    if (marker == 0xFF) {  // fill byte
      ++offset;
      continue;
    }
    constexpr uint8_t kStartOfScan = 0xDA, kApp1 = 0xE1;
    const size_t length = size_t{jpeg[offset + 2]} << 8 | jpeg[offset + 3];
    if (marker == kStartOfScan || length < 2 || offset + 2 + length > jpeg.size()) return 1;
    const auto content = jpeg.subspan(offset + 4, length - 2);
    constexpr auto kExif = "Exif\0\0"sv;
    if (marker == kApp1 && has_text(content, kExif)) {
      return tiff_orientation(content.subspan(kExif.size()));
    }
    offset += 2 + length;
  }
  return 1;
}

Image oriented(Image image, int orientation) {
  if (orientation <= 1 || orientation > 8) return image;
  // 2: mirrored, 3: turned by half, 4: upside down mirrored; 5 to 8: rows and columns swapped.
  const bool is_swapped = orientation >= 5;
  const bool is_x_reversed =
      orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  const bool is_y_reversed =
      orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  Image result(is_swapped ? image.height : image.width, is_swapped ? image.width : image.height);
  for (int64_t y = 0; y < result.height; ++y) {
    for (int64_t x = 0; x < result.width; ++x) {
      const int64_t from_x = is_swapped ? y : x, from_y = is_swapped ? x : y;
      const uint8_t* from = image.at(is_y_reversed ? image.height - 1 - from_y : from_y,
                                     is_x_reversed ? image.width - 1 - from_x : from_x);
      std::copy_n(from, Image::kChannels, result.at(y, x));
    }
  }
  return result;
}

}  // namespace elliptical::data
