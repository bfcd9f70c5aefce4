// SPDX-License-Identifier: MIT
//
// Pictures in folders, one folder a class:
//     FOLDER/train/CLASS/PICTURE, FOLDER/val/CLASS/PICTURE (or valid), perhaps FOLDER/test/...
//     FOLDER/CLASS/PICTURE        a test set
// Without a folder test, the split `test` is val, as everybody evaluates ImageNet. Classes are
// numbered in the order of their names (bytes), and every split must have all of them. Pictures are
// the files that end in .jpg, .jpeg or .png, upper or lower case, in the order of their names.
// Listing happens at once, reading when a picture is asked for.
#pragma once

#include <filesystem>
#include <memory>

#include "elliptical/data/image/image_set.h"

namespace elliptical::data {

struct ImageFolderOptions {
  std::string ids_sha256;              ///< what class names, joined by line feeds, must sum to
  std::vector<int64_t> class_columns;  ///< see ImageSet
  bool is_cropped = false;             ///< see ImageSet
};

/// Throws DataError for a folder that is missing, has no classes, an empty class, or other classes
/// than its split train.
std::unique_ptr<ImageSet> open_image_folder(const std::filesystem::path& folder,
                                            const std::string& name,
                                            Split split,
                                            const ImageFolderOptions& options = {});

}  // namespace elliptical::data
