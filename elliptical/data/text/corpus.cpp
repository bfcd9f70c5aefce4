// SPDX-License-Identifier: MIT
#include "elliptical/data/text/corpus.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "elliptical/base/errors.h"
#include "elliptical/base/files.h"
#include "elliptical/base/names.h"
#include "elliptical/base/sha256.h"
#include "elliptical/data/catalog.h"
#include "elliptical/data/text/small_language.h"
#include "elliptical/data/text/tokens.h"

namespace elliptical::data {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> text_files(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".txt" && entry.is_regular_file())
      files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

/// train, valid and test of a folder, as NAME.txt or as wiki.NAME.tokens, if all three are there.
std::optional<std::array<fs::path, 3>> split_files(const fs::path& folder) {
  for (const auto& [before, after] : {std::pair{"", ".txt"}, std::pair{"wiki.", ".tokens"}}) {
    std::array<fs::path, 3> files;
    bool complete = true;
    for (size_t i = 0; i < files.size(); ++i) {
      files[i] = folder / (before + to_string(kSplits[i]) + after);
      complete = complete && fs::exists(files[i]);
    }
    if (complete) return files;
  }
  return std::nullopt;
}

/// Lines with their ends; a file without an end of its last line gets one.
std::string read_all(const std::vector<fs::path>& files) {
  std::string text;
  for (const fs::path& file : files) {
    std::string piece = read_file(file);
    check_text(piece, file.string());
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

}  // namespace

Corpus::Corpus(TextSource source, int64_t max_words)
    : source_(std::move(source)), vocabulary_({std::string(kEosWord), std::string(kUnkWord)}, "") {
  for (const Split split : kSplits) {
    const std::string text = source_.read(split);
    const std::string& origin = source_.origins[index(split)];
    check_text(text, origin);
    checksums_[index(split)] = sha256_hex(text);
    if (split == Split::kTrain) {
      EncodedText encoded = build_vocabulary(text, max_words);
      vocabulary_ = encoded.vocabulary;
      streams_[index(split)] = std::move(encoded.stream);
    } else {
      streams_[index(split)] = encode(text, vocabulary_);
    }
    const std::vector<int32_t>& stream = streams_[index(split)];
    const auto is_word = [](int32_t id) { return id != Vocabulary::kEos; };
    if (std::none_of(stream.begin(), stream.end(), is_word)) {
      throw DataError(origin + ": must hold words, holds none");
    }
  }
}

std::string Corpus::text(Split split) const {
  std::string text = source_.read(split);
  if (sha256_hex(text) != checksums_[index(split)]) {
    throw DataError(source_.origins[index(split)] + ": changed while it was in use");
  }
  return text;
}

std::map<std::string, std::string> Corpus::fingerprint() const {
  std::map<std::string, std::string> facts;
  for (const Split split : kSplits)
    facts[name() + "/" + to_string(split)] = checksums_[index(split)];
  facts["vocabulary"] = std::to_string(vocabulary_.size()) + " words";
  return facts;
}

void Corpus::require_tokens(Split split, int64_t min_tokens) const {
  const auto size = static_cast<int64_t>(stream(split).size());
  if (size < min_tokens) {
    throw DataError(source_.origins[index(split)] + ": must have at least " +
                    std::to_string(min_tokens) + " tokens, has " + std::to_string(size) +
                    " (choose a smaller window or batch)");
  }
}

TextSource folder_source(const std::string& folder, const std::string& name) {
  if (!fs::is_directory(folder)) throw DataError(folder + ": must be a folder of text files");
  if (const auto files = split_files(folder)) {
    TextSource source{.name = name};
    for (size_t i = 0; i < files->size(); ++i) source.origins[i] = (*files)[i].string();
    source.read = [files](Split split) { return read_file((*files)[static_cast<size_t>(split)]); };
    return source;
  }
  const std::vector<fs::path> files = text_files(folder);
  if (files.empty()) {
    throw DataError(folder + ": must hold train.txt, valid.txt and test.txt, or other .txt files");
  }
  TextSource source{.name = name};
  source.origins.fill(folder);
  source.read = [files, folder](Split split) {
    return lines_of_split(read_all(files), split, folder);
  };
  return source;
}

Corpus open_corpus(const std::string& name, int64_t max_words) {
  if (name == kSmallLanguage) return Corpus(small_language_source(), max_words);
  const bool is_folder = name.find('/') != std::string::npos || fs::is_directory(name);
  if (is_folder) return Corpus(folder_source(name, fs::path(name).filename().string()), max_words);
  return Corpus(folder_source(find_data(name).string(), name), max_words);
}

}  // namespace elliptical::data
