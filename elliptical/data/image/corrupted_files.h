// SPDX-License-Identifier: MIT
//
// Damaged pictures in files, as ImageNet-C was released: FOLDER/NOISE/LEVEL/CLASS/PICTURE, with the
// same pictures for each kind of damage and each level. Some of the folders may not be there. They
// are opened when they are read: ImageNet-C has 4,750,000 files.
#pragma once

#include <deque>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "elliptical/data/corrupt/corruption.h"
#include "elliptical/data/image/image_set.h"

namespace elliptical::data {

class CorruptedFiles {
 public:
  /// Null when `name` is not imagenet-c or a folder of this kind as a whole. Throws SetupError when
  /// imagenet-c is not there, DataError when it has no NOISE/LEVEL or `split` is not test.
  static std::unique_ptr<CorruptedFiles> find(const std::string& name,
                                              Split split,
                                              int64_t max_bad);

  const std::string& name() const { return name_; }
  bool has(const CorruptionEntry& corruption, int severity) const;
  /// The pictures of one folder. May be called from any number of threads. Throws DataError unless
  /// it has as many pictures of each class as every other one.
  std::shared_ptr<const ImageSet> open(const CorruptionEntry& corruption, int severity) const;

 private:
  using Folder = std::pair<const CorruptionEntry*, int>;
  CorruptedFiles(std::string name, std::filesystem::path root, Split split, int64_t max_bad);
  std::filesystem::path place(const Folder& folder) const;
  bool has_any() const;
  void require_same(const ImageSet& set) const;

  std::string name_;
  std::filesystem::path root_;
  Split split_;
  int64_t max_bad_;
  mutable std::mutex mutex_;
  mutable std::deque<std::pair<Folder, std::shared_ptr<const ImageSet>>> opened_;  ///< newest last
  mutable std::string first_name_;             ///< of the folder that was opened first
  mutable std::vector<int64_t> first_labels_;  ///< of its pictures
};

}  // namespace elliptical::data
