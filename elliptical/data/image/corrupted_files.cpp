// SPDX-License-Identifier: MIT
#include "elliptical/data/image/corrupted_files.h"

#include <algorithm>

#include "elliptical/base/errors.h"
#include "elliptical/data/catalog.h"
#include "elliptical/data/image/image_folder.h"
#include "elliptical/data/image/imagenet.h"

namespace elliptical::data {
namespace {

namespace fs = std::filesystem;

constexpr const char* kImageNetC = "imagenet-c";

/// Folders that are kept open: batches ahead may be of several.
constexpr size_t kMaxOpened = 8;

}  // namespace

CorruptedFiles::CorruptedFiles(std::string name, fs::path root, Split split, int64_t max_bad)
    : name_(std::move(name)), root_(std::move(root)), split_(split), max_bad_(max_bad) {}

std::unique_ptr<CorruptedFiles> CorruptedFiles::find(const std::string& name,
                                                     Split split,
                                                     int64_t max_bad) {
  const bool is_imagenet = name == kImageNetC;
  if (!is_imagenet && !fs::is_directory(name)) return nullptr;
  std::unique_ptr<CorruptedFiles> files(
      new CorruptedFiles(name, is_imagenet ? find_data(name) : fs::path(name), split, max_bad));
  if (!files->has_any()) {
    if (!is_imagenet) return nullptr;
    throw DataError(files->root_.string() +
                    ": must have folders NOISE/LEVEL, for instance fog/3, has none");
  }
  if (split != Split::kTest) {
    throw DataError(name + ": must be read as the split test, since it is a test set, got " +
                    to_string(split) + " (--split test)");
  }
  return files;
}

bool CorruptedFiles::has_any() const {
  const auto& table = corruption_table();
  return std::any_of(table.begin(), table.end(), [&](const CorruptionEntry& corruption) {
    for (int severity = 1; severity <= kNumSeverities; ++severity) {
      if (has(corruption, severity)) return true;
    }
    return false;
  });
}

fs::path CorruptedFiles::place(const Folder& folder) const {
  return root_ / folder.first->name / std::to_string(folder.second);
}

bool CorruptedFiles::has(const CorruptionEntry& corruption, int severity) const {
  return fs::is_directory(place({&corruption, severity}));
}

void CorruptedFiles::require_same(const ImageSet& set) const {
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < set.size(); ++i) labels.push_back(set.label(i));
  if (first_name_.empty()) {
    first_name_ = set.name();
    first_labels_ = std::move(labels);
  } else if (labels != first_labels_) {
    throw DataError(set.name() + ": must have as many pictures of each class as " + first_name_ +
                    ", which has " + std::to_string(first_labels_.size()) + " in all, has " +
                    std::to_string(labels.size()));
  }
}

std::shared_ptr<const ImageSet> CorruptedFiles::open(const CorruptionEntry& corruption,
                                                     int severity) const {
  const Folder folder(&corruption, severity);
  const std::lock_guard lock(mutex_);
  for (const auto& [known, set] : opened_) {
    if (known == folder) return set;
  }
  const std::string name = name_ + "/" + corruption.name + "/" + std::to_string(severity);
  // Damaged after the crop, like ImageNet-C: there is nothing to cut off.
  std::shared_ptr<ImageSet> set =
      name_ == kImageNetC ? open_imagenet_at(root_, name, split_)
                          : open_image_folder(place(folder), name, split_, {.is_cropped = true});
  set->set_max_bad(max_bad_);
  require_same(*set);
  if (opened_.size() == kMaxOpened) opened_.pop_front();
  opened_.emplace_back(folder, set);
  return set;
}

}  // namespace elliptical::data
