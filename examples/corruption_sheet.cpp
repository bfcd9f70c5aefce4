// SPDX-License-Identifier: MIT
//
// A picture under all 19 corruptions, on one sheet, in the order of `elliptical list corruptions`;
// the first one is clean.
//     corruption_sheet SHEET.png [SEVERITY [PICTURE [FROST_FOLDER]]]
// Without a picture it draws one; without frost pictures that place stays black.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <optional>
#include <string>

#include "elliptical/base/files.h"
#include "elliptical/data/corrupt/corruption.h"
#include "elliptical/data/image/codec.h"
#include "elliptical/data/image/resample.h"

namespace {

using elliptical::data::Image;

constexpr int64_t kSide = 224, kColumns = 5, kGap = 4;

Image read_picture(const std::string& path) {
  const std::string bytes = elliptical::read_file(path);
  const auto* const data = reinterpret_cast<const uint8_t*>(bytes.data());
  const Image picture = elliptical::data::decode_image({data, bytes.size()}, path);
  using elliptical::data::Filter;
  return elliptical::data::center_crop(
      elliptical::data::resize_shorter(picture, kSide * 8 / 7, Filter::kBilinear), kSide);
}

/// Hills under a sky, with a sun.
Image draw_picture() {
  Image picture(kSide, kSide);
  for (int64_t y = 0; y < kSide; ++y) {
    for (int64_t x = 0; x < kSide; ++x) {
      const int64_t hill = 120 + (x - 70) * (x - 70) / 90,
                    second = 150 + (x - 190) * (x - 190) / 60;
      uint8_t* const pixel = picture.at(y, x);
      pixel[0] = static_cast<uint8_t>(90 + y / 2);
      pixel[1] = static_cast<uint8_t>(150 + y / 4);
      pixel[2] = 230;
      if ((x - 170) * (x - 170) + (y - 50) * (y - 50) < 500)
        pixel[0] = 255, pixel[1] = 220, pixel[2] = 80;
      if (y > hill) pixel[0] = 60, pixel[1] = static_cast<uint8_t>(140 - y / 4), pixel[2] = 50;
      if (y > second) pixel[0] = static_cast<uint8_t>(150 - y / 3), pixel[1] = 100, pixel[2] = 60;
    }
  }
  return picture;
}

void paste(const Image& picture, int64_t place, Image& sheet) {
  const int64_t left = place % kColumns * (kSide + kGap), top = place / kColumns * (kSide + kGap);
  for (int64_t y = 0; y < kSide; ++y) {
    std::copy_n(picture.at(y, 0), kSide * Image::kChannels, sheet.at(top + y, left));
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc < 2) {
      std::fprintf(stderr, "corruption_sheet SHEET.png [SEVERITY [PICTURE [FROST_FOLDER]]]\n");
      return 2;
    }
    const int severity = argc > 2 ? std::stoi(argv[2]) : 3;
    const Image picture = argc > 3 ? read_picture(argv[3]) : draw_picture();
    std::optional<elliptical::data::FrostPictures> frost;
    if (argc > 4) frost = elliptical::data::load_frost_pictures(argv[4]);

    const auto& table = elliptical::data::corruption_table();
    const auto num_rows = static_cast<int64_t>(table.size() + kColumns) / kColumns;
    Image sheet(kColumns * (kSide + kGap) - kGap, num_rows * (kSide + kGap) - kGap);
    paste(picture, 0, sheet);
    for (size_t i = 0; i < table.size(); ++i) {
      if (std::string(table[i].name) == "frost" && !frost) continue;
      const elliptical::RandomKey key(1);
      paste(corrupt(picture, table[i], severity, key, frost ? &*frost : nullptr),
            static_cast<int64_t>(i) + 1, sheet);
    }
    const std::vector<uint8_t> bytes = elliptical::data::encode_png(sheet);
    elliptical::write_file_atomically(argv[1],
                                      {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
