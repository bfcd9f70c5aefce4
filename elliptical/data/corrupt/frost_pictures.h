// SPDX-License-Identifier: MIT
//
// The photographs of frost that the corruption `frost` lays over pictures. They are data:
// `elliptical data get frost` fetches them.
#pragma once

#include <filesystem>
#include <vector>

#include "elliptical/data/image/image.h"

namespace elliptical::data {

struct FrostPictures {
  std::vector<Image> large;  ///< for ImageNet; the five that are drawn, of the six there are
  std::vector<Image> small;  ///< for CIFAR: a fifth of the size
};

/// frost1.png, frost2.png, frost3.png, frost4.jpg and frost5.jpg of a folder. DataError names a
/// file that is missing or broken.
FrostPictures load_frost_pictures(const std::filesystem::path& folder);

/// Every fifth pixel from the third on: what OpenCV's linear resizing by 0.2 takes.
Image fifth_of(const Image& picture);

}  // namespace elliptical::data
