// SPDX-License-Identifier: MIT
#include "elliptical/data/text/vocabulary.h"

#include <algorithm>
#include <numeric>

#include "elliptical/base/errors.h"
#include "elliptical/data/text/tokens.h"
#include "elliptical/data/text/word_index_impl.h"

namespace elliptical::data {

struct Vocabulary::Words {
  std::vector<std::string> words;
  WordIndex index;  // views of `words`
};

Vocabulary::Vocabulary(std::vector<std::string> words, const std::string& name) {
  auto built = std::make_shared<Words>();
  built->words = std::move(words);
  for (const std::string& word : built->words) {
    const auto expected = static_cast<int32_t>(built->index.size());
    if (word.empty()) {
      throw DataError(name + ":" + std::to_string(expected + 1) + ": a word must not be empty");
    }
    if (built->index.insert(word) != expected) {
      throw DataError(name + ":" + std::to_string(expected + 1) + ": word \"" + word +
                      "\" comes twice");
    }
  }
  unk_ = built->index.find(kUnkWord);
  if (built->words.empty() || built->words[0] != kEosWord || unk_ == WordIndex::kNone) {
    throw DataError(name + ": vocabulary must start with <eos> and hold <unk>");
  }
  words_ = std::move(built);
}

Vocabulary Vocabulary::from_text(std::string_view text, const std::string& name) {
  check_text(text, name);
  std::vector<std::string> words;
  for_each_token(text, [&](std::string_view word) { words.emplace_back(word); }, [] {});
  return {std::move(words), name};
}

int64_t Vocabulary::size() const { return words_->index.size(); }

const std::string& Vocabulary::word(int32_t id) const {
  if (id < 0 || id >= size()) {
    throw DataError("vocabulary: id must be in [0, " + std::to_string(size()) + "), got " +
                    std::to_string(id));
  }
  return words_->words[static_cast<size_t>(id)];
}

int32_t Vocabulary::id(std::string_view word) const {
  const int32_t found = words_->index.find(word);
  return found == WordIndex::kNone ? unk_ : found;
}

bool Vocabulary::contains(std::string_view word) const {
  return words_->index.find(word) != WordIndex::kNone;
}

std::string Vocabulary::to_text() const {
  std::string text;
  for (const std::string& word : words_->words) text.append(word).push_back('\n');
  return text;
}

EncodedText build_vocabulary(std::string_view text, int64_t max_words) {
  // One pass: words are numbered as they appear, and renumbered when all are counted.
  WordIndex index;
  std::vector<int64_t> counts;
  std::vector<int32_t> stream;
  stream.reserve(text.size() / 5);
  index.insert(kEosWord);
  counts.push_back(0);
  for_each_token(
      text,
      [&](std::string_view word) {
        const int32_t number = index.insert(word);
        if (static_cast<size_t>(number) == counts.size()) counts.push_back(0);
        ++counts[static_cast<size_t>(number)];
        stream.push_back(number);
      },
      [&] { stream.push_back(Vocabulary::kEos); });

  std::vector<int32_t> order(counts.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin() + 1, order.end(), [&](int32_t a, int32_t b) {
    return counts[static_cast<size_t>(a)] > counts[static_cast<size_t>(b)];
  });
  std::vector<std::string> words;
  for (const int32_t number : order) words.emplace_back(index.word(number));
  const auto limit =
      static_cast<size_t>(max_words > 0 ? std::max<int64_t>(max_words, 2) : INT32_MAX);
  const bool has_unk = index.find(kUnkWord) != WordIndex::kNone;
  const auto unk = has_unk ? std::find(words.begin(), words.end(), kUnkWord) : words.end();
  const bool keeps_unk =
      unk - words.begin() < static_cast<ptrdiff_t>(std::min(limit, words.size()));
  if (words.size() > limit) words.resize(limit);
  if (!keeps_unk) {
    if (words.size() == limit) words.pop_back();
    words.emplace_back(kUnkWord);
  }

  Vocabulary vocabulary(std::move(words), "vocabulary");
  std::vector<int32_t> ids(counts.size(), vocabulary.unk());
  for (size_t rank = 0; rank < order.size(); ++rank) {
    const auto number = static_cast<size_t>(order[rank]);
    ids[number] = vocabulary.id(index.word(order[rank]));
  }
  for (int32_t& number : stream) number = ids[static_cast<size_t>(number)];
  return {std::move(vocabulary), std::move(stream)};
}

std::vector<int32_t> encode(std::string_view text, const Vocabulary& vocabulary) {
  std::vector<int32_t> stream;
  for_each_token(
      text, [&](std::string_view word) { stream.push_back(vocabulary.id(word)); },
      [&] { stream.push_back(Vocabulary::kEos); });
  return stream;
}

std::string decode(const std::vector<int32_t>& ids, const Vocabulary& vocabulary) {
  std::string text;
  for (const int32_t id : ids) {
    if (id == Vocabulary::kEos) {
      text += '\n';
    } else {
      const bool at_start = text.empty() || text.back() == '\n';
      text.append(at_start ? "" : " ").append(vocabulary.word(id));
    }
  }
  return text;
}

}  // namespace elliptical::data
