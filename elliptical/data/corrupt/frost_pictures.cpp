// SPDX-License-Identifier: MIT
#include "elliptical/data/corrupt/frost_pictures.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string>

#include "elliptical/base/files.h"
#include "elliptical/data/image/codec.h"

namespace elliptical::data {

Image fifth_of(const Image& picture) {
  const auto fifth = [](int64_t side) {
    return std::max<int64_t>(1, std::llrint(static_cast<double>(side) * 0.2));
  };
  Image small(fifth(picture.width), fifth(picture.height));
  for (int64_t y = 0; y < small.height; ++y) {
    for (int64_t x = 0; x < small.width; ++x) {
      const uint8_t* const from = picture.at(std::min(5 * y + 2, picture.height - 1),
                                             std::min(5 * x + 2, picture.width - 1));
      std::copy_n(from, Image::kChannels, small.at(y, x));
    }
  }
  return small;
}

FrostPictures load_frost_pictures(const std::filesystem::path& folder) {
  constexpr uint64_t kMaxBytes = uint64_t{1} << 24;
  FrostPictures frost;
  for (const char* name : {"frost1.png", "frost2.png", "frost3.png", "frost4.jpg", "frost5.jpg"}) {
    const std::filesystem::path path = folder / name;
    const std::string bytes = read_file(path, kMaxBytes);
    frost.large.push_back(decode_image(
        std::span(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()), path.string()));
    frost.small.push_back(fifth_of(frost.large.back()));
  }
  return frost;
}

}  // namespace elliptical::data
