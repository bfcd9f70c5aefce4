// SPDX-License-Identifier: MIT
//
// ImageNet and the sets made to test its models:
//     imagenet                 train/ID/*.JPEG and val/ID/*.JPEG, 1000 ids of WordNet
//     imagenet-c/NOISE/LEVEL   NOISE/LEVEL/ID/*.JPEG: 15 + 4 kinds of damage, levels 1 to 5
//     imagenet-a, imagenet-r   ID/*.jpg of 200 of the 1000 ids (imagenet_columns.h)
#pragma once

#include <filesystem>
#include <memory>

#include "elliptical/data/image/image_set.h"

namespace elliptical::data {

/// Null when `name` is none of these. Throws SetupError when the set is not there, DataError when
/// its classes are not ImageNet's.
std::unique_ptr<ImageSet> open_imagenet(const std::string& name, Split split);

/// The same, of a folder that may lie anywhere.
std::unique_ptr<ImageSet> open_imagenet_at(const std::filesystem::path& folder,
                                           const std::string& name,
                                           Split split);

}  // namespace elliptical::data
