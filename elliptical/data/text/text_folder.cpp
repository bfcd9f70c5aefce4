// SPDX-License-Identifier: MIT
//
// Which files of a folder are which split (corpus.h). What a user has split is never split anew,
// since then training would see the text that it is measured on; what could be meant in two ways
// is refused.
#include <algorithm>
#include <filesystem>
#include <optional>

#include "elliptical/base/errors.h"
#include "elliptical/base/names.h"
#include "elliptical/data/text/corpus.h"
#include "elliptical/data/text/tokens.h"

namespace elliptical::data {
namespace {

namespace fs = std::filesystem;

/// File names that say which split they are, by split.
struct NamedSplits {
  std::array<std::vector<std::string>, 3> names;

  const std::vector<std::string>& of(Split split) const {
    return names[static_cast<size_t>(split)];
  }
  bool has(Split split) const { return !of(split).empty(); }
};

/// Names of the files of a folder that end in `ending`, sorted.
std::vector<std::string> files_ending(const fs::path& folder, const std::string& ending) {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(ending) && name != ending && entry.is_regular_file()) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

NamedSplits find_splits(const std::string& folder) {
  NamedSplits found;
  std::vector<std::string> forms;  // the first name of each way of naming
  for (const auto& [before, after] : {std::pair{"", ".txt"}, std::pair{"wiki.", ".tokens"}}) {
    std::optional<std::string> first;
    for (const auto& [split, word] :
         {std::pair(Split::kTrain, "train"), std::pair(Split::kValid, "valid"),
          std::pair(Split::kValid, "val"), std::pair(Split::kTest, "test")}) {
      const std::string name = std::string(before) + word + after;
      if (!fs::is_regular_file(fs::path(folder) / name)) continue;
      if (!first) first = name;
      found.names[static_cast<size_t>(split)].push_back(name);
    }
    if (first) forms.push_back(*first);
  }
  const auto refuse = [&](const std::string& a, const std::string& b) {
    throw DataError(folder + ": must hold each split once, has " + a + " and " + b +
                    " (take one of them away)");
  };
  for (const auto& names : found.names) {
    if (names.size() > 1) refuse(names[0], names[1]);
  }
  if (forms.size() > 1) {
    throw DataError(folder + ": must name its splits in one way, has " + join(forms) +
                    " (rename or take away)");
  }
  return found;
}

/// Throws where the files can be meant in two ways. `others` are .txt files of other names.
void check_splits(const std::string& folder,
                  const NamedSplits& found,
                  const std::vector<std::string>& others) {
  const bool has_valid = found.has(Split::kValid), has_test = found.has(Split::kTest);
  if (!found.has(Split::kTrain)) {
    throw DataError(folder + ": must hold train.txt beside " +
                    found.of(has_valid ? Split::kValid : Split::kTest)[0] +
                    ", does not (name the text to train on train.txt)");
  }
  const std::string& train = found.of(Split::kTrain)[0];
  if (has_test && !has_valid) {
    throw DataError(folder + ": must hold valid.txt beside " + train + " and " +
                    found.of(Split::kTest)[0] +
                    ", does not (take some lines of the text to train on, or rename the test text "
                    "to valid.txt: it is then both)");
  }
  if (!has_valid && !others.empty()) {
    throw DataError(folder + ": must hold valid.txt beside " + train + ", has " + others[0] +
                    " (rename it to valid.txt; or rename " + train +
                    ", then all .txt files are one text that is split by lines)");
  }
}

/// Lines with their ends; a file without an end of its last line gets one.
std::string read_all(const fs::path& folder, const std::vector<std::string>& files) {
  std::string text;
  for (const std::string& file : files) {
    std::string piece = read_text(folder / file);
    check_text(piece, (folder / file).string());
    if (!piece.empty() && piece.back() != '\n') piece += '\n';
    text += piece;
  }
  return text;
}

Split split_of_block(int64_t block) {
  const int64_t place = block % 20;
  return place == 18 ? Split::kValid : place == 19 ? Split::kTest : Split::kTrain;
}

std::string lines_of_split(const std::string& text, Split wanted, const std::string& folder) {
  const auto num_lines = std::count(text.begin(), text.end(), '\n');
  if (num_lines < 20) {
    throw DataError(folder + ": must have at least 20 lines of text to be split, has " +
                    std::to_string(num_lines) + " (or give train.txt, valid.txt and test.txt)");
  }
  const int64_t block_lines = std::clamp<int64_t>(num_lines / 200, 1, 100);
  std::string result;
  size_t start = 0;
  for (int64_t line = 0; line < num_lines; ++line) {
    const size_t end = text.find('\n', start) + 1;
    if (split_of_block(line / block_lines) == wanted) result.append(text, start, end - start);
    start = end;
  }
  return result;
}

TextSource named_source(const std::string& folder,
                        const std::string& name,
                        const NamedSplits& found,
                        const std::vector<std::string>& others) {
  std::array<fs::path, 3> files;
  std::vector<std::string> names;
  for (const Split split : kSplits) {
    const bool is_there = found.has(split);
    const std::string& file = found.of(is_there ? split : Split::kValid)[0];
    files[static_cast<size_t>(split)] = fs::path(folder) / file;
    if (is_there) names.push_back(file);
  }
  TextSource source{.name = name, .files = join(names)};
  if (!found.has(Split::kTest)) source.files += " (there is no test text: test is valid)";
  if (!others.empty()) source.files += "; not read: " + join(others);
  for (size_t i = 0; i < files.size(); ++i) source.origins[i] = files[i].string();
  source.read = [files](Split split) { return read_text(files[static_cast<size_t>(split)]); };
  return source;
}

}  // namespace

TextSource folder_source(const std::string& folder, const std::string& name) {
  if (!fs::is_directory(folder)) throw DataError(folder + ": must be a folder of text files");
  const NamedSplits found = find_splits(folder);
  const std::vector<std::string> files = files_ending(folder, ".txt");
  std::vector<std::string> others;
  std::copy_if(files.begin(), files.end(), std::back_inserter(others), [&](const auto& file) {
    return std::none_of(kSplits.begin(), kSplits.end(), [&](Split split) {
      return found.has(split) && found.of(split)[0] == file;
    });
  });
  const bool is_named =
      std::any_of(kSplits.begin(), kSplits.end(), [&](Split split) { return found.has(split); });
  if (is_named) check_splits(folder, found, others);
  if (found.has(Split::kValid)) return named_source(folder, name, found, others);

  // One text: any .txt files, or a lone text to train on.
  const std::vector<std::string> whole = is_named ? found.of(Split::kTrain) : files;
  if (whole.empty()) {
    throw DataError(folder + ": must hold train.txt, valid.txt and test.txt, or other .txt files");
  }
  const std::string listed =
      whole.size() > 3 ? std::to_string(whole.size()) + " files" : join(whole);
  TextSource source{.name = name, .files = listed + ", split by lines"};
  source.origins.fill(folder);
  source.read = [whole, folder](Split split) {
    return lines_of_split(read_all(folder, whole), split, folder);
  };
  return source;
}

}  // namespace elliptical::data
