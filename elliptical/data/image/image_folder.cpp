// SPDX-License-Identifier: MIT
#include "elliptical/data/image/image_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <future>
#include <mutex>
#include <optional>
#include <span>

#include "elliptical/base/errors.h"
#include "elliptical/base/files.h"
#include "elliptical/base/names.h"
#include "elliptical/base/reading_failed.h"
#include "elliptical/base/sha256.h"
#include "elliptical/data/image/codec.h"

namespace elliptical::data {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxFileBytes = uint64_t{1} << 29;

// What is read of a file to know it again: kDigestPiece bytes at its start, middle and end.
constexpr uint64_t kDigestPiece = 4096;
constexpr int64_t kDigestGroup = 512, kDigestThreads = 8;

/// Adds what the fingerprint knows about the contents of a file; nothing of one that can not be
/// read, which is the affair of whoever needs its picture.
void add_contents(const fs::path& path, Sha256& sha) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0 && is_lack_of_resources(errno)) throw_reading_failed(path, "open", errno);
  if (descriptor < 0) return;
  const auto add = [&](uint64_t offset, uint64_t length) {
    std::array<std::byte, 3 * kDigestPiece> buffer;
    const ssize_t count = ::pread(descriptor, buffer.data(), length, static_cast<off_t>(offset));
    if (count > 0) sha.update(std::span(buffer).first(static_cast<size_t>(count)));
  };
  struct stat status{};
  if (::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode)) {
    const auto size = static_cast<uint64_t>(status.st_size);
    if (size <= 3 * kDigestPiece) {
      add(0, 3 * kDigestPiece);
    } else {
      add(0, kDigestPiece);
      add((size - kDigestPiece) / 2, kDigestPiece);
      add(size - kDigestPiece, kDigestPiece);
    }
  }
  ::close(descriptor);
}

bool is_picture(const fs::path& path) {
  std::string ending = path.extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return ending == ".jpg" || ending == ".jpeg" || ending == ".png";
}

/// Names of what is in a folder and is wanted, sorted by bytes.
template <class Wanted>
std::vector<std::string> list(const fs::path& folder, Wanted wanted) {
  std::vector<std::string> names;
  try {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
      if (wanted(entry)) names.push_back(entry.path().filename().string());
    }
  } catch (const fs::filesystem_error& error) {
    throw DataError(folder.string() + ": can not be listed: " + error.code().message());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> list_classes(const fs::path& folder) {
  return list(folder, [](const fs::directory_entry& entry) {
    return entry.is_directory() && !entry.path().filename().string().starts_with('.');
  });
}

std::optional<fs::path> first_folder(const fs::path& folder,
                                     const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (fs::is_directory(folder / name)) return folder / name;
  }
  return std::nullopt;
}

/// Where the class folders of a split are.
fs::path split_folder(const fs::path& folder, Split split) {
  if (!fs::is_directory(folder)) {
    throw DataError(folder.string() + ": must be a folder of pictures, is not there");
  }
  if (!first_folder(folder, {"train", "val", "valid", "test"})) {
    if (split == Split::kTest) return folder;
    throw DataError(folder.string() + ": must have folders train and val to have a split " +
                    to_string(split) + ", is a test set");
  }
  std::vector<std::string> names = {"val", "valid"};
  if (split == Split::kTrain) names = {"train"};
  if (split == Split::kTest) names.insert(names.begin(), "test");
  if (split != Split::kTrain && fs::is_directory(folder / "val") &&
      fs::is_directory(folder / "valid")) {
    throw DataError(folder.string() +
                    ": must hold each split once, has val and valid (take one of them away)");
  }
  if (const auto found = first_folder(folder, names)) return *found;
  throw DataError(folder.string() + ": must have a folder for the split " + to_string(split) +
                  " (" + join(names) + "), has none");
}

/// Throws unless a split has the classes of train.
void require_same_classes(const fs::path& split,
                          const std::vector<std::string>& classes,
                          const fs::path& train) {
  if (!fs::is_directory(train) || fs::equivalent(split, train)) return;
  const std::vector<std::string> expected = list_classes(train);
  std::vector<std::string> different;
  std::set_symmetric_difference(classes.begin(), classes.end(), expected.begin(), expected.end(),
                                std::back_inserter(different));
  if (different.empty()) return;
  const bool is_missing = std::binary_search(expected.begin(), expected.end(), different[0]);
  throw DataError(split.string() + ": must have the classes of " + train.string() + ", " +
                  (is_missing ? "lacks " : "has also ") + different[0]);
}

class ImageFolder : public ImageSet {
 public:
  ImageFolder(fs::path folder,
              const std::string& name,
              std::vector<std::string> classes,
              const ImageFolderOptions& options)
      : ImageSet(name, std::move(classes)), folder_(std::move(folder)) {
    Sha256 listing;
    for (const std::string& class_name : class_names()) {
      first_of_class_.push_back(static_cast<int64_t>(files_.size()));
      const fs::path place = folder_ / class_name;
      std::vector<std::string> files =
          list(place, [](const fs::directory_entry& entry) { return is_picture(entry.path()); });
      if (files.empty()) {
        throw DataError(place.string() + ": must have pictures (.jpg, .jpeg, .png), has none");
      }
      for (std::string& file : files) {
        std::error_code ignored;
        const uintmax_t bytes = fs::file_size(place / file, ignored);
        listing.update(class_name + "/" + file + " " + std::to_string(bytes) + "\n");
        files_.push_back(std::move(file));
      }
    }
    listing_ = listing.hex();
    set_class_columns(options.class_columns);
    set_cropped(options.is_cropped);
  }

  int64_t size() const override { return static_cast<int64_t>(files_.size()); }
  int64_t label(int64_t index) const override {
    const auto next = std::upper_bound(first_of_class_.begin(), first_of_class_.end(), index);
    return next - first_of_class_.begin() - 1;
  }
  std::string origin(int64_t index) const override { return path(index).string(); }
  std::map<std::string, std::string> fingerprint() const override {
    std::call_once(contents_once_, [this] { contents_ = contents_digest(); });
    return {{"contents", contents_}, {"paths and sizes", listing_}};
  }

 protected:
  Image read(int64_t index) const override {
    const fs::path file = path(index);
    const std::string bytes = read_file(file, kMaxFileBytes);
    return decode_image({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()},
                        file.string());
  }

 private:
  /// Files are read in groups, several at a time: what takes long is waiting for the disk.
  std::string contents_digest() const {
    const int64_t num_groups = (size() + kDigestGroup - 1) / kDigestGroup;
    std::vector<std::string> groups(static_cast<size_t>(num_groups));
    std::atomic<int64_t> next = 0;
    const auto work = [&] {
      for (int64_t group = next++; group < num_groups; group = next++) {
        Sha256 sha;
        const int64_t end = std::min(size(), (group + 1) * kDigestGroup);
        for (int64_t i = group * kDigestGroup; i < end; ++i) add_contents(path(i), sha);
        groups[static_cast<size_t>(group)] = sha.hex();
      }
    };
    std::vector<std::future<void>> others;
    for (int64_t i = 1; i < std::min(num_groups, kDigestThreads); ++i) {
      others.push_back(std::async(std::launch::async, work));
    }
    work();
    for (std::future<void>& other : others) other.get();
    Sha256 all;
    for (const std::string& group : groups) all.update(group);
    return all.hex();
  }

  fs::path path(int64_t index) const {
    return folder_ / class_names()[label(index)] / files_[index];
  }

  fs::path folder_;
  std::vector<std::string> files_;  ///< without folders, class after class
  std::vector<int64_t> first_of_class_;
  std::string listing_;
  mutable std::once_flag contents_once_;
  mutable std::string contents_;
};

}  // namespace

std::unique_ptr<ImageSet> open_image_folder(const fs::path& folder,
                                            const std::string& name,
                                            Split split,
                                            const ImageFolderOptions& options) {
  const fs::path place = split_folder(folder, split);
  std::vector<std::string> classes = list_classes(place);
  if (classes.size() < 2) {
    throw DataError(place.string() + ": must have a folder for each of at least 2 classes, has " +
                    std::to_string(classes.size()));
  }
  require_same_classes(place, classes, folder / "train");
  std::string ids;
  for (const std::string& id : classes) ids += (ids.empty() ? "" : "\n") + id;
  if (!options.ids_sha256.empty() && sha256_hex(ids) != options.ids_sha256) {
    throw DataError(place.string() +
                    ": must have the 1000 WordNet ids of ImageNet as folders, has " +
                    std::to_string(classes.size()) + " folders that are not these");
  }
  if (!options.class_columns.empty() && classes.size() != options.class_columns.size()) {
    throw DataError(place.string() + ": must have " + std::to_string(options.class_columns.size()) +
                    " classes, has " + std::to_string(classes.size()));
  }
  return std::make_unique<ImageFolder>(place, name, std::move(classes), options);
}

}  // namespace elliptical::data
