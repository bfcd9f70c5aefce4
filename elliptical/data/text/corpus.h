// SPDX-License-Identifier: MIT
//
// Text data for language models: three splits as streams of ids, with the vocabulary of the
// training split, or one that trained weights brought along. Where it comes from, by name:
//     small-language      made up on the spot (small_language.h)
//     wikitext-2, ...     a data set of the catalog (data/catalog.h), found or refused with advice
//     some/folder         any folder (a name with a slash, or a folder that exists)
// A folder holds train.txt, valid.txt, test.txt (training, val, validation, dev, testing and capital
// letters are understood), or wiki.train.tokens and so on;
// without a test file test is valid. Or it holds .txt files of other names, or train.txt alone:
// those are taken in the order of their names and split by lines: in blocks of B = lines / 200
// lines (1 to 100), of each 20 blocks the 19th goes to valid and the 20th to test. Anything in
// between is refused.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "elliptical/data/split.h"
#include "elliptical/data/text/vocabulary.h"

namespace elliptical::data {

/// The raw text of three splits.
struct TextSource {
  std::string name;                        ///< what records call it: "wikitext-2"
  std::array<std::string, 3> origins;      ///< what messages call each split: a path
  std::string files;                       ///< what is read, for people: "train.txt, valid.txt"
  std::function<std::string(Split)> read;  ///< the text itself, anew with each call
};

class Corpus {
 public:
  /// Reads and checks everything. Throws DataError with file, line and offset.
  explicit Corpus(TextSource source, int64_t max_words = 0);
  /// The same in words that weights belong to, whatever words the training text has.
  Corpus(TextSource source, Vocabulary vocabulary);

  const std::string& name() const { return source_.name; }
  const Vocabulary& vocabulary() const { return vocabulary_; }
  const std::vector<int32_t>& stream(Split split) const { return streams_[index(split)]; }
  /// The raw text of a split, for damage to be done to it. DataError when it changed meanwhile.
  std::string text(Split split) const;
  /// Checksums of the splits and the size of the vocabulary: equal means the same data.
  std::map<std::string, std::string> fingerprint() const;
  /// Files, tokens, vocabulary and unknown words, in a line for people.
  std::string description() const;
  /// Throws DataError when a split has fewer tokens than a model needs.
  void require_tokens(Split split, int64_t min_tokens) const;

 private:
  /// The text of a split, checked; its checksum is noted.
  std::string read(Split split);
  /// DataError where it holds no words.
  void set_stream(Split split, std::vector<int32_t> stream);

  static size_t index(Split split) { return static_cast<size_t>(split); }
  TextSource source_;
  Vocabulary vocabulary_;
  std::array<std::vector<int32_t>, 3> streams_;
  std::array<std::string, 3> checksums_;
};

/// Finds a text by name or folder as above.
TextSource open_source(const std::string& name);

/// Opens it, with the vocabulary of its training split.
Corpus open_corpus(const std::string& name, int64_t max_words = 0);

/// The files of a folder as a source. DataError when it holds no text, or when it is not clear
/// which file is which split.
TextSource folder_source(const std::string& folder, const std::string& name);

}  // namespace elliptical::data
