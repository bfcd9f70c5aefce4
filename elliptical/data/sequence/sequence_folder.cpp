// SPDX-License-Identifier: MIT
//
// Which form the files of a folder have, and which of them is which split. A set of train and test
// alone is as IMDB is published: both serve as validation, as in the published results; with train
// and valid alone test is valid.
#include <filesystem>

#include "elliptical/base/errors.h"
#include "elliptical/base/names.h"
#include "elliptical/data/sequence/grey_pictures.h"
#include "elliptical/data/sequence/line_file.h"
#include "elliptical/data/sequence/listops_file.h"
#include "elliptical/data/sequence/pathfinder_set.h"
#include "elliptical/data/sequence/text_files.h"
#include "elliptical/data/sequence/text_rows.h"

namespace elliptical::data {
namespace {

namespace fs = std::filesystem;

/// Names of the files or folders of a split, the first that is there counts.
std::vector<std::string> stems_of(Split split) {
  switch (split) {
    case Split::kTrain:
      return {"train"};
    case Split::kValid:
      return {"valid", "val", "dev", "test"};
    case Split::kTest:
      return {"test", "valid", "val", "dev"};
  }
  return {};
}

/// The place of a split, named BEFORE STEM AFTER; DataError when there is none.
template <class IsThere>
fs::path place_of(const fs::path& folder,
                  Split split,
                  const std::string& after,
                  const IsThere& is_there) {
  std::vector<std::string> names;
  for (const std::string& stem : stems_of(split)) {
    if (is_there(folder / (stem + after))) return folder / (stem + after);
    names.push_back(stem + after);
  }
  throw DataError(folder.string() + ": must hold the split " + to_string(split) + " (" +
                  join(names) + "), does not");
}

fs::path aan_file(const fs::path& folder, Split split) {
  return folder / (std::string("new_aan_pairs.") +
                   (split == Split::kValid ? "eval" : to_string(split)) + ".tsv");
}

int64_t listops_length(const OpenSequencesOptions& options) {
  return options.max_length > 0 ? options.max_length : 2000;
}

}  // namespace

std::unique_ptr<SequenceSet> open_sequence_folder(const std::string& folder,
                                                  const std::string& name,
                                                  Split split,
                                                  const OpenSequencesOptions& options) {
  const fs::path place = folder;
  if (!fs::is_directory(place)) throw DataError(folder + ": must be a folder, is none");
  const auto has_any = [&](const auto& file_of) {
    return has_lines(file_of(Split::kTrain)) || has_lines(file_of(Split::kValid)) ||
           has_lines(file_of(Split::kTest));
  };
  if (has_any([&](Split one) { return listops_file(place, one); })) {
    const fs::path file = listops_file(place, split);
    if (file.empty()) {
      throw DataError(folder + ": must hold the split " + to_string(split) + ", does not");
    }
    return open_listops_file(file, name, split, listops_length(options));
  }
  if (has_any([&](Split one) { return aan_file(place, one); })) {
    return open_text_rows(aan_file(place, split), aan_file(place, Split::kTrain), TextRowForm::kAan,
                          name, split, options);
  }
  if (fs::is_directory(place / "imgs") && fs::is_directory(place / "metadata")) {
    return open_pathfinder_files(place, name, split, options);
  }
  for (const auto& [after, form] :
       {std::pair(".jsonl", TextRowForm::kJson), std::pair(".tsv", TextRowForm::kTsv)}) {
    const fs::path train = place / (std::string("train") + after);
    if (!has_lines(train)) continue;
    return open_text_rows(place_of(place, split, after, has_lines), train, form, name, split,
                          options);
  }
  const auto is_folder = [](const fs::path& path) { return fs::is_directory(path); };
  if (is_folder(place / "train") && has_text_files(place / "train")) {
    return open_text_files(place_of(place, split, "", is_folder), place / "train", name, split,
                           options);
  }
  if (is_folder(place / "train")) {
    auto set = open_grey_pictures(open_images(folder, split), split, options);
    for (int64_t i = 0; i < set->size(); ++i) set->get(i);  // all of one size, before training
    return set;
  }
  throw DataError(folder +
                  ": must hold train.tsv, train.jsonl, train/CLASS/*.txt or train/CLASS/*.png, or "
                  "the files of a task of Long Range Arena, does not");
}

}  // namespace elliptical::data
