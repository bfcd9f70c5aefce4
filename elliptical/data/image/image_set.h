// SPDX-License-Identifier: MIT
//
// Labelled pictures by number. Where they come from, by name:
//     small-pictures          made up on the spot (small_pictures.h)
//     cifar-10, cifar-100     the binary files, plain or .xz (cifar.h)
//     imagenet-16             16 pictures of ImageNet, for tests of pretrained models (packed.h)
//     imagenet                folders train/CLASS/PICTURE and val/CLASS/PICTURE (image_folder.h)
//     imagenet-a, imagenet-r  folders CLASS/PICTURE; test only
//     imagenet-c/NOISE/LEVEL  the same, for instance imagenet-c/fog/3
//     some/folder             any folder (a name with a slash, or a folder that exists): train and
//                             val (or valid), perhaps test, with one folder a class; or the class
//                             folders themselves, which is a test set
// A data set of the catalog is looked for where data/catalog.h says.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "elliptical/data/image/image.h"
#include "elliptical/data/split.h"

namespace elliptical::data {

class ImageSet {
 public:
  virtual ~ImageSet() = default;
  ImageSet(const ImageSet&) = delete;
  ImageSet& operator=(const ImageSet&) = delete;

  const std::string& name() const { return name_; }
  virtual int64_t size() const = 0;
  /// 0 to num_classes() - 1.
  virtual int64_t label(int64_t index) const = 0;
  /// What messages call a picture: a path, or a file and a number.
  virtual std::string origin(int64_t index) const = 0;

  /// Picture number `index`. May be called from any number of threads. A file that is no picture is
  /// a DataError with its path; up to `max_bad` such files of a set are replaced by the next
  /// readable picture of the same class instead, and counted.
  Image get(int64_t index) const;
  void set_max_bad(int64_t max_bad) { max_bad_ = max_bad; }
  int64_t num_bad() const;

  int64_t num_classes() const { return static_cast<int64_t>(class_names_.size()); }
  const std::vector<std::string>& class_names() const { return class_names_; }
  /// Which outputs of a model of more classes stand for the classes of this set, in order; empty:
  /// the model has these classes.
  const std::vector<int64_t>& class_columns() const { return class_columns_; }

  /// Whether pictures show only what a model is to see, so that evaluation cuts nothing off.
  bool is_cropped() const { return is_cropped_; }

  /// Checksums by name: equal means the same data. docs/data.md says of what, for folders.
  virtual std::map<std::string, std::string> fingerprint() const = 0;

 protected:
  ImageSet(std::string name, std::vector<std::string> class_names)
      : name_(std::move(name)), class_names_(std::move(class_names)) {}
  /// Reads without replacing anything. May be called from any number of threads.
  virtual Image read(int64_t index) const = 0;
  void set_class_columns(std::vector<int64_t> columns) { class_columns_ = std::move(columns); }
  void set_cropped(bool is_cropped) { is_cropped_ = is_cropped; }

 private:
  void count_bad(int64_t index, const std::string& message) const;

  std::string name_;
  std::vector<std::string> class_names_;
  std::vector<int64_t> class_columns_;
  bool is_cropped_ = false;
  int64_t max_bad_ = 0;
  mutable std::mutex mutex_;
  mutable std::set<int64_t> bad_;
};

struct OpenImagesOptions {
  int64_t max_bad = 0;  ///< pictures that may be unreadable before it is an error
  int64_t side = 32;    ///< of small-pictures
  uint64_t seed = 1;    ///< of small-pictures
};

/// Opens one split of a set by name or folder as above.
std::unique_ptr<ImageSet> open_images(const std::string& name,
                                      Split split,
                                      const OpenImagesOptions& options = {});

}  // namespace elliptical::data
