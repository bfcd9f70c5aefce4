// SPDX-License-Identifier: MIT
#include "elliptical/data/image/cifar.h"

#include <algorithm>

#include "elliptical/base/errors.h"
#include "elliptical/base/sha256.h"
#include "elliptical/data/xz.h"

namespace elliptical::data {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kCifarSide = 32;
constexpr uint64_t kMaxArrayBytes = uint64_t{1} << 28;  // CIFAR-100 has 154 million

uint8_t label_of(std::string_view record, const CifarFormat& format) {
  return static_cast<uint8_t>(record[format.label_bytes - 1]);
}

/// The lines of the file of class names, which must be as many as there are classes.
std::vector<std::string> read_class_names(const CifarFormat& format, const fs::path& folder) {
  const fs::path file = folder / format.class_file;
  const std::string text = read_plain_or_xz(file, 1 << 16);
  std::vector<std::string> names;
  for (size_t start = 0; start < text.size();) {
    const size_t end = std::min(text.find('\n', start), text.size());
    std::string line = text.substr(start, end - start);
    if (!line.empty() && line.back() == '\r') line.pop_back();
    start = end + 1;
    if (line.empty()) continue;
    if (std::find(names.begin(), names.end(), line) != names.end()) {
      throw DataError(file.string() + ": must name each class once, names " + line + " twice");
    }
    names.push_back(line);
  }
  if (static_cast<int64_t>(names.size()) != format.num_classes) {
    throw DataError(file.string() + ": must have " + std::to_string(format.num_classes) +
                    " names, has " + std::to_string(names.size()));
  }
  return names;
}

class CifarSet : public ImageSet {
 public:
  CifarSet(const CifarFormat& format, const fs::path& folder, Split split)
      : ImageSet(format.name, read_class_names(format, folder)), format_(format) {
    std::vector<std::string> files = format.train_files;
    if (split == Split::kTest) files = {format.test_file};
    // All of valid is in the last file: the others need not be read.
    if (split == Split::kValid) files = {files.back()};
    for (const std::string& file : files) {
      const std::string bytes = read_plain_or_xz(folder / file, kMaxArrayBytes);
      check_cifar(bytes, (folder / file).string(), format);
      checksums_[file] = sha256_hex(bytes);
      records_ += bytes;
    }
    origin_ = (folder / (files.size() == 1 ? files[0] : "train")).string();
    const int64_t num_records = static_cast<int64_t>(records_.size()) / format.record_bytes();
    const int64_t num_valid = split == Split::kTest ? 0 : kCifarValid;
    if (num_records <= num_valid) {
      throw DataError(origin_ + ": must have more than " + std::to_string(num_valid) +
                      " pictures, has " + std::to_string(num_records));
    }
    first_ = split == Split::kValid ? num_records - num_valid : 0;
    size_ = split == Split::kValid ? num_valid : num_records - num_valid;
  }

  int64_t size() const override { return size_; }
  int64_t label(int64_t index) const override { return label_of(record(index), format_); }
  std::string origin(int64_t index) const override {
    return origin_ + ", picture " + std::to_string(first_ + index);
  }
  std::map<std::string, std::string> fingerprint() const override { return checksums_; }

 protected:
  Image read(int64_t index) const override { return cifar_picture(record(index), format_); }

 private:
  std::string_view record(int64_t index) const {
    return std::string_view(records_).substr((first_ + index) * format_.record_bytes(),
                                             format_.record_bytes());
  }

  const CifarFormat& format_;
  std::string records_, origin_;
  int64_t first_ = 0, size_ = 0;
  std::map<std::string, std::string> checksums_;
};

}  // namespace

const CifarFormat& cifar_10() {
  static const CifarFormat format = {
      .name = "cifar-10",
      .train_files = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                      "data_batch_4.bin", "data_batch_5.bin"},
      .test_file = "test_batch.bin",
      .class_file = "batches.meta.txt",
      .label_bytes = 1,
      .num_classes = 10};
  return format;
}

const CifarFormat& cifar_100() {
  static const CifarFormat format = {.name = "cifar-100",
                                     .train_files = {"train.bin"},
                                     .test_file = "test.bin",
                                     .class_file = "fine_label_names.txt",
                                     .label_bytes = 2,
                                     .num_classes = 100};
  return format;
}

void check_cifar(std::string_view bytes, const std::string& name, const CifarFormat& format) {
  const size_t record_bytes = format.record_bytes();
  if (bytes.empty() || bytes.size() % record_bytes != 0) {
    throw DataError(name + ": must be records of " + std::to_string(record_bytes) + " bytes, has " +
                    std::to_string(bytes.size()) + " bytes");
  }
  for (size_t offset = 0; offset < bytes.size(); offset += record_bytes) {
    const int label = label_of(bytes.substr(offset), format);
    if (label >= format.num_classes) {
      throw DataError(name + ": labels must be 0 to " + std::to_string(format.num_classes - 1) +
                      ", got " + std::to_string(label) + " (offset " + std::to_string(offset) +
                      ")");
    }
  }
}

std::unique_ptr<ImageSet> open_cifar(const CifarFormat& format,
                                     const fs::path& folder,
                                     Split split) {
  return std::make_unique<CifarSet>(format, folder, split);
}

Image cifar_picture(std::string_view record, const CifarFormat& format) {
  record.remove_prefix(format.label_bytes);
  Image image(kCifarSide, kCifarSide);
  for (int64_t i = 0; i < kCifarSide * kCifarSide; ++i) {
    for (int64_t channel = 0; channel < Image::kChannels; ++channel) {
      image.pixels[Image::kChannels * i + channel] =
          static_cast<uint8_t>(record[channel * kCifarSide * kCifarSide + i]);
    }
  }
  return image;
}

}  // namespace elliptical::data
