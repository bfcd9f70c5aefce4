// SPDX-License-Identifier: MIT
#include "elliptical/data/sequence/text_files.h"

#include <algorithm>

#include "elliptical/base/errors.h"
#include "elliptical/base/files.h"
#include "elliptical/base/sha256.h"
#include "elliptical/data/sequence/encodings_impl.h"
#include "elliptical/data/sequence/text_rows.h"

namespace elliptical::data {
namespace {

namespace fs = std::filesystem;

/// A longer file is no document.
constexpr uint64_t kMaxDocumentBytes = uint64_t{16} << 20;

template <class Keep>
std::vector<std::string> names_in(const fs::path& folder, Keep keep) {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (keep(entry)) names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool is_text_file(const fs::directory_entry& entry) {
  return entry.is_regular_file() && entry.path().extension() == ".txt";
}

std::vector<std::string> classes_in(const fs::path& folder) {
  return names_in(folder, [](const fs::directory_entry& entry) {
    const std::string name = entry.path().filename().string();
    return entry.is_directory() && name != "unsup" && !name.starts_with('.');
  });
}

class TextFiles : public SequenceSet {
 public:
  TextFiles(fs::path folder,
            std::vector<std::string> classes,
            const std::string& name,
            Split split,
            const OpenSequencesOptions& options)
      : SequenceSet(SequenceForm{.name = name,
                                 .class_names = std::move(classes),
                                 .vocabulary = byte_vocabulary(),
                                 .max_length = text_length(options)}),
        folder_(std::move(folder)),
        split_(split),
        refuse_longer_(options.refuse_longer) {
    Sha256 sum;
    for (const std::string& class_name : form().class_names) {
      first_of_class_.push_back(size());
      const auto found = names_in(folder_ / class_name, is_text_file);
      if (found.empty()) {
        throw DataError((folder_ / class_name).string() + ": must have .txt files, has none");
      }
      for (const std::string& file : found) {
        files_.push_back(file);
        sum.update(class_name + "/" + file + "\n" + sha256_hex(document(size() - 1)) + "\n");
      }
    }
    sha256_ = sum.hex();
  }

  int64_t size() const override { return static_cast<int64_t>(files_.size()); }
  int64_t label(int64_t index) const override {
    const auto next = std::upper_bound(first_of_class_.begin(), first_of_class_.end(), index);
    return next - first_of_class_.begin() - 1;
  }
  std::string origin(int64_t index) const override {
    return (folder_ / form().class_names[static_cast<size_t>(label(index))] /
            files_[static_cast<size_t>(index)])
        .string();
  }
  std::map<std::string, std::string> fingerprint() const override {
    return {{to_string(split_), sha256_}};
  }

 protected:
  SequenceExample read(int64_t index) const override {
    const std::string text = document(index);
    return {.ids = byte_ids(text, form().max_length),
            .second_ids = {},
            .label = label(index),
            .facts = {{"bytes", static_cast<int64_t>(text.size())}}};
  }

 private:
  std::string document(int64_t index) const {
    const std::string file = origin(index);
    std::string text = read_file(file, kMaxDocumentBytes);
    const auto end = text.begin() + static_cast<ptrdiff_t>(std::min(text.find('\0'), text.size()));
    const auto line = end == text.end() ? 1 : 1 + std::count(text.begin(), end, '\n');
    check_document(text, form().max_length, refuse_longer_, file + ":" + std::to_string(line));
    return text;
  }

  fs::path folder_;
  Split split_;
  bool refuse_longer_;
  std::vector<std::string> files_;  ///< without folders, class after class
  std::vector<int64_t> first_of_class_;
  std::string sha256_;
};

}  // namespace

bool has_text_files(const fs::path& folder) {
  for (const std::string& class_name : classes_in(folder)) {
    if (!names_in(folder / class_name, is_text_file).empty()) return true;
  }
  return false;
}

std::unique_ptr<SequenceSet> open_text_files(const fs::path& folder,
                                             const fs::path& train_folder,
                                             const std::string& name,
                                             Split split,
                                             const OpenSequencesOptions& options) {
  std::vector<std::string> classes = classes_in(folder);
  if (classes.size() < 2) {
    throw DataError(folder.string() + ": must have a folder for each of at least 2 classes, has " +
                    std::to_string(classes.size()));
  }
  if (classes != classes_in(train_folder)) {
    throw DataError(folder.string() + ": must have the classes of " + train_folder.string() +
                    ", has others");
  }
  return std::make_unique<TextFiles>(folder, std::move(classes), name, split, options);
}

}  // namespace elliptical::data
