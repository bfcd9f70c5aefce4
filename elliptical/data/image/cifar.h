// SPDX-License-Identifier: MIT
//
// CIFAR-10 and CIFAR-100 in their binary form: records of one label byte (CIFAR-100: two, coarse
// and fine; the fine one counts), then 1,024 red, 1,024 green and 1,024 blue bytes of 32 x 32
// pixels, row by row. Each file may be packed with xz. The last 5,000 training pictures are the
// split `valid`.
#pragma once

#include <filesystem>
#include <memory>
#include <string_view>

#include "elliptical/data/image/image_set.h"

namespace elliptical::data {

/// One of the two forms.
struct CifarFormat {
  const char* name;
  std::vector<std::string> train_files;
  std::string test_file;
  std::string class_file;  ///< one name a line
  int64_t label_bytes;     ///< the last of them is the label
  int64_t num_classes;
  int64_t record_bytes() const { return label_bytes + 3 * 1024; }
};

const CifarFormat& cifar_10();
const CifarFormat& cifar_100();

inline constexpr int64_t kCifarValid = 5000;

/// Throws DataError with name and offset when a file of that form is cut or has a label that is too
/// large.
void check_cifar(std::string_view bytes, const std::string& name, const CifarFormat& format);

/// Throws DataError when files are missing or damaged. All pictures of the split are in memory.
std::unique_ptr<ImageSet> open_cifar(const CifarFormat& format,
                                     const std::filesystem::path& folder,
                                     Split split);

/// One record, checked before, as a picture.
Image cifar_picture(std::string_view record, const CifarFormat& format);

}  // namespace elliptical::data
