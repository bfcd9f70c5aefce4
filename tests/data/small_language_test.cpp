// SPDX-License-Identifier: MIT
#include "elliptical/data/text/small_language.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "elliptical/data/corrupt/word_swap.h"

namespace elliptical::data {
namespace {

TEST(SmallLanguage, IsAFunctionOfItsSeed) {
  const SmallLanguageOptions options{.train_lines = 50, .eval_lines = 20};
  EXPECT_EQ(small_language_text(Split::kTrain, options),
            small_language_text(Split::kTrain, options));
  EXPECT_NE(small_language_text(Split::kValid, options),
            small_language_text(Split::kTest, options));
  EXPECT_NE(small_language_text(Split::kTest, options),
            small_language_text(Split::kTest, {.train_lines = 50, .eval_lines = 20, .seed = 2}));
  // More lines begin with the same lines.
  const std::string more = small_language_text(Split::kTrain, {.train_lines = 60});
  EXPECT_EQ(more.rfind(small_language_text(Split::kTrain, options), 0), 0u);
}

TEST(SmallLanguage, HasTheSizeItSays) {
  const Corpus corpus = open_corpus("small-language");
  const double tokens_per_line = static_cast<double>(corpus.stream(Split::kTrain).size()) / 12'000;
  EXPECT_NEAR(tokens_per_line, 45, 3);
  EXPECT_GT(corpus.vocabulary().size(), 1500);
  EXPECT_LT(corpus.vocabulary().size(), 3000);
  EXPECT_GT(corpus.vocabulary().unk(), 1);
  // Nearly all words of test are known: <unk> is as frequent as it was in training.
  int64_t unknown = 0;
  for (const int32_t id : corpus.stream(Split::kTest))
    unknown += id == corpus.vocabulary().unk() ? 1 : 0;
  EXPECT_LT(static_cast<double>(unknown) / static_cast<double>(corpus.stream(Split::kTest).size()),
            0.01);
}

/// Entropy of the next word given the last `order` words, in nats, on the text itself: too low by
/// what it memorises, so only orders 0 and 1 are compared.
double entropy(const std::vector<int32_t>& stream, bool use_previous) {
  std::map<std::pair<int32_t, int32_t>, double> pairs;
  std::map<int32_t, double> contexts;
  for (size_t i = 1; i < stream.size(); ++i) {
    const int32_t context = use_previous ? stream[i - 1] : 0;
    ++pairs[{context, stream[i]}];
    ++contexts[context];
  }
  double sum = 0;
  for (const auto& [pair, count] : pairs) sum -= count * std::log(count / contexts[pair.first]);
  return sum / static_cast<double>(stream.size() - 1);
}

TEST(SmallLanguage, ContextHelps) {
  const Corpus corpus = open_corpus("small-language");
  const std::vector<int32_t>& stream = corpus.stream(Split::kTrain);
  EXPECT_GT(entropy(stream, false), entropy(stream, true) + 1.0);
}

TEST(SmallLanguage, LinesEndWithTheirHeroAndFirstNoun) {
  const std::string text = small_language_text(Split::kTest, {.eval_lines = 100});
  size_t start = 0;
  for (int i = 0; i < 100; ++i) {
    const size_t end = text.find('\n', start);
    const std::string line = text.substr(start, end - start);
    const std::string hero = line.substr(0, line.find(' '));
    const size_t so = line.rfind(" so " + hero + " ");
    ASSERT_NE(so, std::string::npos) << line;
    const size_t the = line.rfind(" the ");
    const std::string noun = line.substr(the + 5, line.size() - the - 7);
    EXPECT_LT(line.find(" " + noun + " "), the) << line;
    start = end + 1;
  }
}

TEST(SmallLanguage, HasStopWordsAndOthers) {
  const SwappedText swapped = swap_words(small_language_text(Split::kTest), {});
  EXPECT_GT(swapped.num_words, swapped.num_eligible);
  EXPECT_GT(swapped.num_eligible, swapped.num_words / 2);
}

}  // namespace
}  // namespace elliptical::data
