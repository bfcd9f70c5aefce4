// SPDX-License-Identifier: MIT
#include "elliptical/data/corrupt/word_swap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "elliptical/base/errors.h"
#include "elliptical/data/catalog.h"
#include "elliptical/data/text/corpus.h"
#include "elliptical/data/text/small_language.h"
#include "elliptical/data/text/tokens.h"
#include "tests/support/error_message.h"

namespace elliptical::data {
namespace {

using test::error_message;

std::vector<std::string> words(const std::string& line) {
  std::vector<std::string> result;
  for (const WordPlace& place : find_words(line)) {
    result.push_back(line.substr(place.begin, place.end - place.begin));
  }
  return result;
}

/// The tokens of a text; "" stands for the end of a line.
std::vector<std::string> tokens(std::string_view text) {
  std::vector<std::string> result;
  for_each_token(
      text, [&](std::string_view word) { result.emplace_back(word); },
      [&] { result.emplace_back(); });
  return result;
}

int64_t count_replaced(const std::string& text) {
  int64_t count = 0;
  for (size_t i = text.find("AAA"); i != std::string::npos; i = text.find("AAA", i + 3)) ++count;
  return count;
}

/// "w0 w1 ... w(n-1)", all eligible.
std::string line_of_words(int count) {
  std::string line;
  for (int i = 0; i < count; ++i) line += "w" + std::to_string(i) + " ";
  return line + "\n";
}

TEST(FindWords, FollowsTheExamplesOfTheSpecification) {
  using List = std::vector<std::string>;
  EXPECT_EQ(words("@-@"), List{});
  EXPECT_EQ(words("<unk>"), List{"unk"});
  EXPECT_EQ(words("'s"), List{"s"});
  EXPECT_EQ(words("Valkyria"), List{"Valkyria"});
  EXPECT_EQ(words(" = Robert <unk> = "), (List{"Robert", "unk"}));
  EXPECT_EQ(words("don't well-known foo- _bar_ a/b (x) 1,000 *@-"),
            (List{"don't", "well-known", "foo-", "bar_", "a", "b", "x", "1", "000"}));
  EXPECT_EQ(words("caf\xC3\xA9 \xE4\xB8\xAD\xE6\x96\x87 \xE2\x80\x94 e\xCC\x81t"),
            (List{"caf\xC3\xA9", "\xE4\xB8\xAD\xE6\x96\x87", "e", "t"}));
  EXPECT_EQ(words(""), List{});
}

TEST(StopWords, AreCaseSensitive) {
  for (const char* word : {"the", "a", "you're", "wouldn't", "yourselves", "s"}) {
    EXPECT_TRUE(is_stop_word(word)) << word;
  }
  for (const char* word : {"The", "A", "AAA", "cat", ""}) EXPECT_FALSE(is_stop_word(word)) << word;
}

TEST(WordSwap, WS1TokenCountIsUnchanged) {
  const std::string text = small_language_text(Split::kTest, {.eval_lines = 200});
  for (const SwapUnit unit : {SwapUnit::kLine, SwapUnit::kStream}) {
    for (const double rate : {0.0, 0.025, 0.5, 1.0}) {
      const SwappedText swapped = swap_words(text, {.rate = rate, .unit = unit});
      EXPECT_EQ(tokens(swapped.text).size(), tokens(text).size());
      EXPECT_EQ(swapped.swapped.size(), tokens(text).size());
    }
  }
}

TEST(WordSwap, WS1WikiTextTestKeepsItsTokens) {
  if (!locate_data("wikitext-2")) GTEST_SKIP() << "wikitext-2 is not here";
  const Corpus corpus = open_corpus("wikitext-2");
  const SwappedText swapped = swap_words(corpus.text(Split::kTest), {});
  EXPECT_EQ(encode(swapped.text, corpus.vocabulary()).size(), 245'569u);
  EXPECT_EQ(swapped.swapped.size(), 245'569u);
  const SwappedText exact = swap_words(corpus.text(Split::kTest), {.unit = SwapUnit::kStream});
  EXPECT_EQ(exact.num_swapped_tokens, 6139);  // round(0.025 * 245569)
  EXPECT_NEAR(exact.token_rate(), 0.025, 1e-5);
}

TEST(WordSwap, WS2RateZeroStillSwapsOneWordOfALine) {
  const SwappedText swapped = swap_words("one cat two\n\nthe of and\nsingle", {.rate = 0});
  const std::vector<std::string> before = tokens("one cat two\n\nthe of and\nsingle");
  const std::vector<std::string> after = tokens(swapped.text);
  EXPECT_EQ(count_replaced(swapped.text), 2);
  EXPECT_EQ(swapped.num_swapped_words, 2);
  for (size_t i = 4; i < 9; ++i) EXPECT_EQ(after[i], before[i]);  // blank line, stop-words
  EXPECT_EQ(after[9], "AAA");
}

TEST(WordSwap, WS3NumberOfSwaps) {
  const std::string line = line_of_words(100);
  const int draws = 4'000;
  int fewer = 0;
  for (int seed = 0; seed < draws; ++seed) {
    const auto strict = swap_words(line, {.seed = static_cast<uint64_t>(seed)});
    ASSERT_EQ(strict.num_swapped_words, 2);
    const auto published =
        swap_words(line, {.seed = static_cast<uint64_t>(seed), .profile = SwapProfile::kPublished});
    ASSERT_EQ(count_replaced(published.text), published.num_swapped_words);
    ASSERT_TRUE(published.num_swapped_words == 2 || published.num_swapped_words == 1);
    fewer += published.num_swapped_words == 1 ? 1 : 0;
  }
  EXPECT_NEAR(fewer, draws / 100.0,
              5 * std::sqrt(draws * 0.01 * 0.99));  // 5 sigma, seeds are fixed
}

TEST(WordSwap, WS3PublishedLeavesAOneSwapLineAloneNowAndThen) {
  int untouched = 0;
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    untouched +=
        swap_words("cat", {.seed = seed, .profile = SwapProfile::kPublished}).text == "cat" ? 1 : 0;
  }
  EXPECT_NEAR(untouched, 1000, 5 * std::sqrt(500.0));  // M = 1
}

TEST(WordSwap, CountsAreThoseOfTheLine) {
  EXPECT_EQ(swap_words(line_of_words(39), {}).num_swapped_words, 1);
  EXPECT_EQ(swap_words(line_of_words(40), {}).num_swapped_words, 1);
  EXPECT_EQ(swap_words(line_of_words(80), {}).num_swapped_words, 2);
  EXPECT_EQ(swap_words(line_of_words(400), {.rate = 0.015}).num_swapped_words, 6);
  // Stop-words count for n, and can not be chosen.
  EXPECT_EQ(swap_words("the the the the the the the cat\n", {.rate = 0.5}).text,
            "the the the the the the the AAA\n");
}

TEST(WordSwap, WS4ChangedTokensDifferInsideOneWordOnly) {
  const std::string text = "( cat ) <unk> the @-@ well-known 's \"dog\" of AAA x\n";
  const std::vector<std::string> before = tokens(text);
  for (uint64_t seed = 0; seed < 300; ++seed) {
    for (const SwapUnit unit : {SwapUnit::kLine, SwapUnit::kStream}) {
      const SwappedText swapped = swap_words(text, {.rate = 0.3, .seed = seed, .unit = unit});
      const std::vector<std::string> after = tokens(swapped.text);
      ASSERT_EQ(after.size(), before.size());
      for (size_t i = 0; i < after.size(); ++i) {
        EXPECT_EQ(swapped.swapped[i] != 0, after[i] != before[i]);
        if (after[i] == before[i]) continue;
        EXPECT_FALSE(is_stop_word(before[i]));
        const size_t place = after[i].find("AAA");
        ASSERT_NE(place, std::string::npos);
        EXPECT_EQ(after[i].substr(0, place), before[i].substr(0, place));
        const std::string rest = after[i].substr(place + 3);
        EXPECT_TRUE(before[i].ends_with(rest));
      }
    }
  }
}

TEST(WordSwap, WS5PlacesAreChosenEvenly) {
  // 10^4 draws of 2 of 20 places: chi-square with 19 degrees of freedom is below 43.8 with
  // probability 0.999; the seeds are fixed, so it either holds or does not.
  const int draws = 10'000, places = 20;
  for (const SwapUnit unit : {SwapUnit::kLine, SwapUnit::kStream}) {
    std::vector<int> counts(places, 0);
    for (int seed = 0; seed < draws; ++seed) {
      const auto swapped = swap_words(
          line_of_words(places), {.rate = 0.1, .seed = static_cast<uint64_t>(seed), .unit = unit});
      for (int i = 0; i < places; ++i) counts[i] += swapped.swapped[i];
    }
    const double expected = 2.0 * draws / places;
    double chi_square = 0;
    for (const int count : counts) chi_square += (count - expected) * (count - expected) / expected;
    EXPECT_LT(chi_square, 43.8);
  }
}

TEST(WordSwap, WS6SeedDecides) {
  const std::string text = small_language_text(Split::kTest, {.eval_lines = 50});
  EXPECT_EQ(swap_words(text, {.seed = 3}).text, swap_words(text, {.seed = 3}).text);
  EXPECT_NE(swap_words(text, {.seed = 3}).text, swap_words(text, {.seed = 4}).text);
  // A line is damaged the same way whatever follows it.
  const std::string first = text.substr(0, text.find('\n') + 1);
  EXPECT_EQ(swap_words(text, {.seed = 3}).text.rfind(swap_words(first, {.seed = 3}).text, 0), 0u);
}

TEST(WordSwap, StreamUnitSwapsExactly) {
  const std::string text = small_language_text(Split::kTest, {.eval_lines = 50});
  const auto num_tokens = static_cast<double>(tokens(text).size());
  const SwappedText swapped = swap_words(text, {.rate = 0.1, .unit = SwapUnit::kStream});
  EXPECT_EQ(swapped.num_swapped_tokens, std::llround(0.1 * num_tokens));
  EXPECT_EQ(swapped.token_rate(), static_cast<double>(std::llround(0.1 * num_tokens)) / num_tokens);
  EXPECT_EQ(swap_words(text, {.rate = 0, .unit = SwapUnit::kStream}).text, text);
  const SwappedText all = swap_words(text, {.rate = 1, .unit = SwapUnit::kStream});
  EXPECT_EQ(all.num_swapped_tokens, all.num_eligible);  // one word a token in this text
}

TEST(WordSwap, OptionsAreChecked) {
  const auto error = [](const WordSwapOptions& options) {
    return error_message<UsageError>([&] { swap_words("a\n", options); });
  };
  EXPECT_EQ(error({.rate = -0.1}), "word swap: rate must be in [0, 1], got -0.100000");
  EXPECT_EQ(error({.rate = 1.5}), "word swap: rate must be in [0, 1], got 1.500000");
  EXPECT_EQ(error({.profile = SwapProfile::kPublished, .unit = SwapUnit::kStream}),
            "word swap: unit stream belongs to the profile strict, got published");
  EXPECT_EQ(error_message<UsageError>([] { swap_profile_from_string("strikt"); }),
            "swap profile: unknown \"strikt\", did you mean \"strict\"?");
  EXPECT_EQ(error_message<UsageError>([] { swap_unit_from_string("word"); }),
            "swap unit: unknown \"word\", known: line, stream");
  for (const auto profile : {SwapProfile::kStrict, SwapProfile::kPublished}) {
    EXPECT_EQ(swap_profile_from_string(to_string(profile)), profile);
  }
  for (const auto unit : {SwapUnit::kLine, SwapUnit::kStream}) {
    EXPECT_EQ(swap_unit_from_string(to_string(unit)), unit);
  }
}

TEST(WordSwap, EmptyTextStaysEmpty) {
  const SwappedText swapped = swap_words("", {});
  EXPECT_EQ(swapped.text, "");
  EXPECT_TRUE(swapped.swapped.empty());
  EXPECT_EQ(swapped.word_rate(), 0);
  EXPECT_EQ(swapped.token_rate(), 0);
}

}  // namespace
}  // namespace elliptical::data
