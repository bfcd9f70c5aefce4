// SPDX-License-Identifier: MIT
#include "elliptical/data/image/image_set.h"

#include <filesystem>
#include <stdexcept>

#include "elliptical/base/errors.h"
#include "elliptical/base/names.h"
#include "elliptical/data/catalog.h"
#include "elliptical/data/image/cifar.h"
#include "elliptical/data/image/image_folder.h"
#include "elliptical/data/image/imagenet.h"
#include "elliptical/data/image/packed.h"
#include "elliptical/data/image/small_pictures.h"

namespace elliptical::data {
namespace {

namespace fs = std::filesystem;

bool is_folder(const std::string& name) {
  return name.find('/') != std::string::npos || fs::is_directory(name);
}

std::unique_ptr<ImageSet> open_by_name(const std::string& name,
                                       Split split,
                                       const OpenImagesOptions& options) {
  if (name == kSmallPictures) {
    return std::make_unique<SmallPictures>(
        split, SmallPicturesOptions{.side = options.side, .seed = options.seed});
  }
  if (name == "cifar-10") return open_cifar(cifar_10(), find_data(name), split);
  if (name == "cifar-100") return open_cifar(cifar_100(), find_data(name), split);
  if (name == "imagenet-16") return open_packed(find_data(name), split);
  if (auto set = open_imagenet(name, split)) return set;
  if (is_folder(name)) return open_image_folder(name, name, split);
  throw ConfigError("data: " + unknown_name(name, {std::string(kSmallPictures), "cifar-10",
                                                   "cifar-100", "imagenet", "imagenet-16",
                                                   "imagenet-a", "imagenet-c", "imagenet-r"}));
}

}  // namespace

Image ImageSet::get(int64_t index) const {
  if (index < 0 || index >= size()) {
    throw std::out_of_range(name_ + ": picture must be 0 to " + std::to_string(size() - 1) +
                            ", got " + std::to_string(index));
  }
  // Whichever thread asks, and whatever was asked before, the replacement is the same.
  for (int64_t step = 0; step < size(); ++step) {
    const int64_t candidate = (index + step) % size();
    if (label(candidate) != label(index)) continue;
    try {
      return read(candidate);
    } catch (const DataError& error) {
      count_bad(candidate, error.what());
    }
  }
  throw DataError(name_ + ": class " + class_names_[label(index)] + " has no readable picture");
}

void ImageSet::count_bad(int64_t index, const std::string& message) const {
  const std::lock_guard lock(mutex_);
  bad_.insert(index);
  if (static_cast<int64_t>(bad_.size()) <= max_bad_) return;
  const std::string allowed =
      max_bad_ == 0 ? "" : " (more than the " + std::to_string(max_bad_) + " that may be)";
  throw DataError(message + allowed);
}

int64_t ImageSet::num_bad() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int64_t>(bad_.size());
}

std::unique_ptr<ImageSet> open_images(const std::string& name,
                                      Split split,
                                      const OpenImagesOptions& options) {
  auto set = open_by_name(name, split, options);
  set->set_max_bad(options.max_bad);
  return set;
}

}  // namespace elliptical::data
