// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>

#include "elliptical/base/distributions.h"
#include "elliptical/base/errors.h"
#include "elliptical/base/files.h"
#include "elliptical/base/printable.h"
#include "elliptical/base/sha256.h"
#include "elliptical/data/image/codec.h"
#include "elliptical/data/sequence/encodings_impl.h"
#include "elliptical/data/sequence/grey_pictures.h"
#include "elliptical/data/sequence/line_file.h"
#include "elliptical/data/sequence/pathfinder_set.h"

namespace elliptical::data {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxFileBytes = uint64_t{1} << 20;

/// The words of a line, at most one more than there may be.
std::vector<std::string_view> words_of(std::string_view line, size_t most) {
  std::vector<std::string_view> words;
  for (size_t start = 0; start < line.size() && words.size() <= most;) {
    const size_t end = std::min(line.find(' ', start), line.size());
    if (end > start) words.push_back(line.substr(start, end - start));
    start = end + 1;
  }
  return words;
}

/// A whole number that may be written as 14 or 14.0.
int64_t whole_number(std::string_view word, const char* what, const std::string& where) {
  if (word.ends_with(".0")) word.remove_suffix(2);
  int64_t value = -1;
  const auto parsed = std::from_chars(word.data(), word.data() + word.size(), value);
  if (parsed.ec != std::errc() || parsed.ptr != word.data() + word.size() || value < 0) {
    throw DataError(where + ": the " + what + " must be a whole number, is \"" +
                    printable(word.substr(0, 20)) + "\"");
  }
  return value;
}

/// Throws unless a PNG file says that it has that size. Nothing but its first bytes are read: there
/// are 200,000 of them. Whether it is a picture at all shows when it is read.
void check_png_size(const fs::path& file, int64_t side) {
  std::array<uint8_t, 24> bytes = {};  // signature; length, name, width and height of IHDR
  std::ifstream stream(file, std::ios::binary);
  stream.read(reinterpret_cast<char*>(bytes.data()), bytes.size());
  const auto number = [&](size_t at) {
    int64_t value = 0;
    for (size_t i = at; i < at + 4; ++i) value = value << 8 | bytes[i];
    return value;
  };
  const int64_t width = number(16), height = number(20);
  if (!stream || (width == side && height == side)) return;
  throw DataError(file.string() + ": must be " + std::to_string(side) + " x " +
                  std::to_string(side) + " pixels, is " + std::to_string(width) + " x " +
                  std::to_string(height));
}

bool is_plain_path(const fs::path& path) {
  return path.is_relative() && path.has_filename() &&
         std::none_of(path.begin(), path.end(),
                      [](const fs::path& part) { return part == ".." || part == "."; });
}

class PathfinderFiles : public SequenceSet {
 public:
  PathfinderFiles(fs::path folder,
                  const std::string& name,
                  Split split,
                  const OpenSequencesOptions& options)
      : SequenceSet(SequenceForm{.name = name,
                                 .class_names = {"apart", "connected"},
                                 .vocabulary = pixel_vocabulary(options.pixel_ids),
                                 .max_length = options.side * options.side,
                                 .side = options.side}),
        folder_(std::move(folder)),
        split_(split),
        pixel_ids_(options.pixel_ids) {
    std::vector<PathfinderFile> all = list();
    // Split alike in every run: a fixed order of the files, in which each split is a stretch.
    constexpr RandomKey kOrder = RandomKey(1).derive("pathfinder files");
    const auto count = static_cast<uint64_t>(all.size());
    const uint64_t eval = count / 10, train = count - 2 * eval;
    const uint64_t first = split == Split::kTrain   ? 0
                           : split == Split::kValid ? train
                                                    : train + eval;
    const uint64_t last = split == Split::kTrain ? train : first + eval;
    if (first == last) {
      throw DataError(folder_.string() + ": must have at least 10 pictures to be split, has " +
                      std::to_string(count));
    }
    for (uint64_t i = first; i < last; ++i) {
      files_.push_back(std::move(all[permuted(kOrder, count, i)]));
    }
  }

  int64_t size() const override { return static_cast<int64_t>(files_.size()); }
  int64_t label(int64_t index) const override { return files_[static_cast<size_t>(index)].label; }
  std::string origin(int64_t index) const override {
    return (folder_ / files_[static_cast<size_t>(index)].path).string();
  }
  std::map<std::string, std::string> fingerprint() const override {
    return {{"metadata and sizes", sha256_}, {to_string(split_), std::to_string(size())}};
  }

 protected:
  SequenceExample read(int64_t index) const override {
    const std::string file = origin(index);
    const std::string bytes = read_file(file, kMaxFileBytes);
    const Image picture =
        decode_image({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, file,
                     {.max_pixels = 1 << 20, .max_side = 1 << 10});
    require_side(picture, form().side, file);
    const PathfinderFile& listed = files_[static_cast<size_t>(index)];
    return {.ids = to_pixel_ids(grey_values(picture), pixel_ids_),
            .second_ids = {},
            .label = listed.label,
            .facts = {{"contour_length", listed.contour_length}}};
  }

 private:
  /// Every picture of the metadata that is there and has bytes.
  std::vector<PathfinderFile> list() {
    std::vector<fs::path> tables;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder_ / "metadata")) {
      if (entry.path().extension() == ".npy") tables.push_back(entry.path());
    }
    std::sort(tables.begin(), tables.end());
    std::vector<PathfinderFile> found;
    Sha256 sum;
    for (const fs::path& table : tables) {
      const LineFile lines(table, [&](std::string_view line, const std::string& where) {
        PathfinderFile file = parse_pathfinder_line(line, where);
        std::error_code error;
        const uintmax_t num_bytes = fs::file_size(folder_ / file.path, error);
        if (error) throw DataError(where + ": " + printable(file.path) + " must be there, is not");
        sum.update(file.path + " " + std::to_string(num_bytes) + "\n");
        if (num_bytes == 0) return true;
        check_png_size(folder_ / file.path, form().side);
        found.push_back(std::move(file));
        return true;
      });
      sum.update(lines.sha256());
    }
    if (found.empty()) throw DataError(folder_.string() + ": must have pictures, has none");
    sha256_ = sum.hex();
    return found;
  }

  fs::path folder_;
  Split split_;
  PixelIds pixel_ids_;
  std::vector<PathfinderFile> files_;
  std::string sha256_;
};

}  // namespace

PathfinderFile parse_pathfinder_line(std::string_view line, const std::string& where) {
  constexpr size_t kColumns = 11;
  const std::vector<std::string_view> words = words_of(line, kColumns);
  if (words.size() != kColumns) {
    throw DataError(where + ": must have 11 columns with blanks between, has " +
                    (words.size() > kColumns ? "more" : std::to_string(words.size())));
  }
  PathfinderFile file{.path = std::string(words[0]) + "/" + std::string(words[1])};
  if (!is_plain_path(file.path)) {
    throw DataError(where + ": must name a picture below its folder, names " +
                    printable(file.path.substr(0, 200)));
  }
  file.label = whole_number(words[3], "label", where);
  if (file.label > 1) {
    throw DataError(where + ": the label must be 0 or 1, is " + std::to_string(file.label));
  }
  file.contour_length = whole_number(words[5], "contour length", where);
  return file;
}

std::unique_ptr<SequenceSet> open_pathfinder_files(const fs::path& folder,
                                                   const std::string& name,
                                                   Split split,
                                                   const OpenSequencesOptions& options) {
  return std::make_unique<PathfinderFiles>(folder, name, split, options);
}

}  // namespace elliptical::data
