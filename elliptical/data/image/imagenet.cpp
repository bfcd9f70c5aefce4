// SPDX-License-Identifier: MIT
#include "elliptical/data/image/imagenet.h"

#include "elliptical/base/errors.h"
#include "elliptical/data/catalog.h"
#include "elliptical/data/image/image_folder.h"
#include "elliptical/data/image/imagenet_columns.h"

namespace elliptical::data {
namespace {

/// SHA-256 of the 1000 ids, sorted, joined by line feeds.
constexpr const char* kIds = "385e0240499426c022b773be1ae4da780f057b89c9694c7f47199f62746b6edd";

template <size_t N>
std::vector<int64_t> to_vector(const std::array<int16_t, N>& columns) {
  return {columns.begin(), columns.end()};
}

/// imagenet-c of imagenet-c/fog/3; the name itself otherwise.
std::string set_of(const std::string& name) { return name.substr(0, name.find('/')); }

}  // namespace

std::unique_ptr<ImageSet> open_imagenet_at(const std::filesystem::path& folder,
                                           const std::string& name,
                                           Split split) {
  const std::string set = set_of(name);
  ImageFolderOptions options;
  if (set == "imagenet-a") {
    options.class_columns = to_vector(kImageNetAColumns);
  } else if (set == "imagenet-r") {
    options.class_columns = to_vector(kImageNetRColumns);
  } else {
    options.ids_sha256 = kIds;
  }
  if (set != "imagenet-c") return open_image_folder(folder, name, split, options);
  if (name == set) {
    throw ConfigError(
        "data: imagenet-c must be asked for as imagenet-c/NOISE/LEVEL, for instance "
        "imagenet-c/fog/3 (all of it: elliptical eval RUN --split test --set data=imagenet-c)");
  }
  options.is_cropped = true;  // 224 x 224, damaged after the crop
  return open_image_folder(folder / name.substr(set.size() + 1), name, split, options);
}

std::unique_ptr<ImageSet> open_imagenet(const std::string& name, Split split) {
  const std::string set = set_of(name);
  const bool is_known =
      name == "imagenet" || name == "imagenet-a" || name == "imagenet-r" || set == "imagenet-c";
  return is_known ? open_imagenet_at(find_data(set), name, split) : nullptr;
}

}  // namespace elliptical::data
