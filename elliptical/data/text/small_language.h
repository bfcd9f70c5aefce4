// SPDX-License-Identifier: MIT
//
// A small made-up language, so that language models train and are compared without any download. It
// is a seeded probabilistic grammar whose text a model can only predict well by using context of
// several lengths. What lowers the entropy of the next word, from near to far:
//   - word order: determiner, adjectives, noun, verb, closing of quotations (the last one or two
//     words);
//   - agreement: determiners, nouns and verbs are singular or plural alike, and the verb agrees
//     with the head of its phrase across relative clauses and prepositional phrases with nouns of
//     another number in between;
//   - topic: each line has one of 12, and four of five of its nouns, verbs and adjectives come from
//     the topic's own list of a twelfth of the words: knowing the topic is worth about 2.4 nats on
//     them;
//   - memory: each line has a hero, who is named again or stands behind `he` or `she` (fixed by the
//     name), and ends with the line's first noun: a word that may be 80 tokens back.
// Within a list words are Zipfian. One noun in fifty is `<unk>`, so that a model learns the entry.
// Function words are English, so that protecting stop-words (data/corrupt/word_swap.h) means
// something.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "elliptical/base/random.h"
#include "elliptical/data/text/corpus.h"

namespace elliptical::data {

inline constexpr std::string_view kSmallLanguage = "small-language";

struct SmallLanguageOptions {
  int64_t train_lines = 12'000;  ///< about 45 tokens each
  int64_t eval_lines = 800;      ///< of valid and of test
  uint64_t seed = 1;
};

inline constexpr uint64_t kSmallLanguageTopics = 12;

/// A line with that topic, below kSmallLanguageTopics, without its end.
std::string small_language_line(RandomKey key, uint64_t topic);

/// A line depends on seed, split and its number only.
std::string small_language_text(Split split, const SmallLanguageOptions& options = {});

TextSource small_language_source(const SmallLanguageOptions& options = {});

}  // namespace elliptical::data
