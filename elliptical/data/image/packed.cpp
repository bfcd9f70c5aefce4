// SPDX-License-Identifier: MIT
#include "elliptical/data/image/packed.h"

#include <algorithm>
#include <charconv>

#include "elliptical/base/errors.h"
#include "elliptical/base/files.h"
#include "elliptical/base/sha256.h"
#include "elliptical/data/xz.h"

namespace elliptical::data {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kPackedSide = 224;
constexpr int64_t kPictureBytes = kPackedSide * kPackedSide * Image::kChannels;
constexpr uint64_t kMaxIndexBytes = 1 << 24, kMaxPixelBytes = uint64_t{1} << 31;
constexpr const char* kPixels = "imagenet16_images_224x224x3.u8";
constexpr const char* kLabels = "imagenet16_labels.tsv";
constexpr const char* kClasses = "synset_words.txt";

/// Lines without their ends; empty lines are left out.
std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty()) lines.push_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::vector<std::string> read_class_names(const fs::path& file) {
  std::vector<std::string> names;
  const std::string text = read_file(file, kMaxIndexBytes);
  for (const std::string_view line : lines_of(text)) {
    const size_t space = line.find(' ');  // after the id of WordNet
    names.emplace_back(space == std::string_view::npos ? line : line.substr(space + 1));
  }
  return names;
}

class PackedSet : public ImageSet {
 public:
  explicit PackedSet(const fs::path& folder)
      : ImageSet("imagenet-16", read_class_names(folder / kClasses)) {
    const std::string index = read_file(folder / kLabels, kMaxIndexBytes);
    entries_ = parse_packed_index(index, (folder / kLabels).string(), num_classes());
    origin_ = (folder / kPixels).string();
    const size_t expected = entries_.size() * kPictureBytes;
    pixels_ = read_plain_or_xz(folder / kPixels, std::min<uint64_t>(expected, kMaxPixelBytes));
    if (pixels_.size() != expected) {
      throw DataError(origin_ + ": must have " + std::to_string(expected) + " bytes for " +
                      std::to_string(entries_.size()) + " pictures, has " +
                      std::to_string(pixels_.size()));
    }
    set_cropped(true);
    checksums_ = {{kPixels, sha256_hex(pixels_)}, {kLabels, sha256_hex(index)}};
  }

  int64_t size() const override { return static_cast<int64_t>(entries_.size()); }
  int64_t label(int64_t index) const override { return entries_[index].label; }
  std::string origin(int64_t index) const override { return origin_ + ", " + entries_[index].file; }
  std::map<std::string, std::string> fingerprint() const override { return checksums_; }

 protected:
  Image read(int64_t index) const override {
    Image image(kPackedSide, kPackedSide);
    std::copy_n(pixels_.begin() + index * kPictureBytes, kPictureBytes, image.pixels.begin());
    return image;
  }

 private:
  std::vector<PackedEntry> entries_;
  std::string pixels_, origin_;
  std::map<std::string, std::string> checksums_;
};

}  // namespace

std::vector<PackedEntry> parse_packed_index(std::string_view text,
                                            const std::string& name,
                                            int64_t num_classes) {
  std::vector<PackedEntry> entries;
  const std::vector<std::string_view> lines = lines_of(text);
  for (size_t i = 1; i < lines.size(); ++i) {  // the first line names the columns
    const std::string where = name + ", picture " + std::to_string(i);
    const size_t tab = lines[i].find('\t');
    if (tab == std::string_view::npos) {
      throw DataError(where + ": must be file, tab, label");
    }
    const std::string_view rest = lines[i].substr(tab + 1);
    const std::string_view digits = rest.substr(0, rest.find('\t'));
    int64_t label = -1;
    const char* end = digits.data() + digits.size();
    const auto parsed = std::from_chars(digits.data(), end, label);
    if (parsed.ec != std::errc() || parsed.ptr != end || label < 0 || label >= num_classes) {
      throw DataError(where + ": label must be 0 to " + std::to_string(num_classes - 1) +
                      ", got \"" + std::string(digits.substr(0, 20)) + "\"");
    }
    entries.push_back({std::string(lines[i].substr(0, tab)), label});
  }
  if (entries.empty()) throw DataError(name + ": must name pictures, names none");
  return entries;
}

std::unique_ptr<ImageSet> open_packed(const fs::path& folder, Split split) {
  if (split != Split::kTest) {
    throw DataError(folder.string() + ": is a test set, has no split " + to_string(split));
  }
  return std::make_unique<PackedSet>(folder);
}

}  // namespace elliptical::data
