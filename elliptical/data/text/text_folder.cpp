// SPDX-License-Identifier: MIT
//
// Which files of a folder are which split (corpus.h). What a user has split is never split anew,
// since then training would see the text that it is measured on; what could be meant in two ways
// is refused.
#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <optional>
#include <string_view>

#include "elliptical/base/errors.h"
#include "elliptical/base/names.h"
#include "elliptical/data/text/corpus.h"
#include "elliptical/data/text/tokens.h"

namespace elliptical::data {
namespace {

namespace fs = std::filesystem;

/// What people call the splits, in the order of kSplits.
constexpr std::array<std::array<std::string_view, 4>, 3> kSplitWords = {
    {{"train", "training"}, {"valid", "val", "validation", "dev"}, {"test", "testing"}}};
/// It says that text is measured, but not whether while training or after it.
constexpr std::array<std::string_view, 2> kUnclearWords = {"eval", "evaluation"};

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

std::string lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

/// The split that people mean by a word.
std::optional<Split> split_called(std::string_view word) {
  for (const Split split : kSplits) {
    const auto& words = kSplitWords[static_cast<size_t>(split)];
    if (!word.empty() && std::find(words.begin(), words.end(), word) != words.end()) return split;
  }
  return std::nullopt;
}

bool is_unclear(std::string_view word) {
  return std::find(kUnclearWords.begin(), kUnclearWords.end(), word) != kUnclearWords.end();
}

/// What a file is called without its ending, in lower case: "Train.txt" is meant like "train.txt".
std::string stem_of(const std::string& file) { return lower_case(fs::path(file).stem().string()); }

/// The word of a longer name that calls it a split: "train" of "en.train-01.txt"; "" of others.
std::string split_word_in(const std::string& file) {
  const std::string stem = stem_of(file);
  const auto is_letter = [](unsigned char c) { return std::isalpha(c) != 0 || c >= 0x80; };
  for (auto it = stem.begin(); it != stem.end();) {
    const auto begin = std::find_if(it, stem.end(), is_letter);
    it = std::find_if_not(begin, stem.end(), is_letter);
    const std::string word(begin, it);
    if (split_called(word) || is_unclear(word)) return word;
  }
  return "";
}

NamedSplits find_splits(const std::string& folder, const std::vector<std::string>& files) {
  NamedSplits found;
  std::vector<std::string> forms;  // the first name of each way of naming
  for (const std::string& file : files) {
    const std::string stem = stem_of(file);
    if (is_unclear(stem)) {
      throw DataError(folder + ": must say whether " + file +
                      " is the validation or the test text, does not (rename it to valid.txt or "
                      "test.txt)");
    }
    if (const auto split = split_called(stem)) {
      found.names[static_cast<size_t>(*split)].push_back(file);
    }
  }
  for (const auto& names : found.names) {
    if (!names.empty() && forms.empty()) forms.push_back(names[0]);
  }
  bool has_tokens = false;
  for (const auto& [split, word] :
       {std::pair(Split::kTrain, "train"), std::pair(Split::kValid, "valid"),
        std::pair(Split::kValid, "val"), std::pair(Split::kTest, "test")}) {
    const std::string name = "wiki." + std::string(word) + ".tokens";
    if (!fs::is_regular_file(fs::path(folder) / name)) continue;
    if (!has_tokens) forms.push_back(name);
    has_tokens = true;
    found.names[static_cast<size_t>(split)].push_back(name);
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

/// Files that are to be one text: none of them may be meant as a split.
void check_one_text(const std::string& folder, const std::vector<std::string>& files) {
  if (files.size() < 2) return;
  for (const std::string& file : files) {
    const std::string word = split_word_in(file);
    if (word.empty()) continue;
    throw DataError(folder +
                    ": must hold train.txt, valid.txt and test.txt, or files of one text, has " +
                    file + ", whose name says \"" + word +
                    "\" (rename the files that are splits; or take that word out of the name, then "
                    "all .txt files are one text that is split by lines)");
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
  const std::vector<std::string> files = files_ending(folder, ".txt");
  const NamedSplits found = find_splits(folder, files);
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
  if (!is_named) check_one_text(folder, whole);
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
