// SPDX-License-Identifier: MIT
//
// A word-level vocabulary: `<eos>` has id 0, then the words of the training text by descending
// frequency, ties by first appearance. No lower-casing and, unless asked for, no cut-off. Words
// that it does not have are `<unk>`; a training text without `<unk>` gets it as the last entry.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace elliptical::data {

inline constexpr std::string_view kEosWord = "<eos>", kUnkWord = "<unk>";

/// Immutable and cheap to copy.
class Vocabulary {
 public:
  static constexpr int32_t kEos = 0;

  /// The words by id. Throws DataError "NAME: ..." unless they are different, start with `<eos>`
  /// and hold `<unk>`.
  Vocabulary(std::vector<std::string> words, const std::string& name);
  /// What `to_text` wrote.
  static Vocabulary from_text(std::string_view text, const std::string& name);

  int64_t size() const;
  const std::string& word(int32_t id) const;  ///< throws DataError for an id it does not have
  int32_t id(std::string_view word) const;    ///< unk() for an unknown word
  bool contains(std::string_view word) const;
  int32_t unk() const { return unk_; }

  /// One word a line.
  std::string to_text() const;

 private:
  struct Words;
  std::shared_ptr<const Words> words_;
  int32_t unk_ = 0;
};

/// A text as ids, with the vocabulary they belong to.
struct EncodedText {
  Vocabulary vocabulary;
  std::vector<int32_t> stream;
};

/// The vocabulary of a training text, and that text in it. With `max_words` > 0 only the first
/// `max_words` entries are kept (`<eos>` and `<unk>` among them), the rest is `<unk>`.
EncodedText build_vocabulary(std::string_view text, int64_t max_words = 0);

/// A text as ids: the words of each line, then `<eos>`.
std::vector<int32_t> encode(std::string_view text, const Vocabulary& vocabulary);

/// The words of ids, separated by spaces; `<eos>` ends the line.
std::string decode(const std::vector<int32_t>& ids, const Vocabulary& vocabulary);

}  // namespace elliptical::data
