// SPDX-License-Identifier: MIT
#include "elliptical/data/corrupt/word_swap.h"

#include <algorithm>
#include <cmath>

#include "elliptical/base/errors.h"
#include "elliptical/base/names.h"
#include "elliptical/base/random.h"
#include "elliptical/base/utf8.h"
#include "elliptical/data/corrupt/stop_words_impl.h"
#include "elliptical/data/text/tokens.h"

namespace elliptical::data {
namespace {

/// May not start a word.
bool is_stripped(char c) { return std::string_view("'-_*@").find(c) != std::string_view::npos; }

/// Bytes of the character at the start of `text` if it may stand in a word, otherwise 0.
size_t word_character_length(std::string_view text) {
  if (is_stripped(text[0])) return 1;
  return is_word_character(utf8_decode(text)) ? utf8_length(text) : 0;
}

/// The first `count` of the numbers below `size`, in random order.
std::vector<size_t> draw_distinct(size_t size, size_t count, RandomStream& random) {
  std::vector<size_t> numbers(size);
  for (size_t i = 0; i < size; ++i) numbers[i] = i;
  for (size_t i = 0; i < count; ++i) std::swap(numbers[i], numbers[i + random.below(size - i)]);
  numbers.resize(count);
  return numbers;
}

/// Calls `f(number, line)` for each line, without its end.
template <class F>
void for_each_line(std::string_view text, F f) {
  for (uint64_t number = 0; !text.empty(); ++number) {
    const size_t end = text.find('\n');
    f(number, text.substr(0, end));
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
  }
}

bool is_eligible(std::string_view word, const WordSwapOptions& options) {
  return word != options.word && !is_stop_word(word);
}

/// How many swaps a line gets.
size_t count_swaps(size_t num_words,
                   size_t num_eligible,
                   const WordSwapOptions& options,
                   RandomStream& random) {
  const double asked = std::floor(options.rate * static_cast<double>(num_words));
  const size_t count = std::min(std::max(static_cast<size_t>(asked), size_t{1}), num_eligible);
  if (options.profile == SwapProfile::kPublished && count > 0) {
    const size_t left = num_eligible - (count - 1);
    if (random.below(left + 1) == left) return count - 1;
  }
  return count;
}

/// The places of the words to be swapped, as offsets in the text, ascending.
std::vector<WordPlace> choose_by_line(std::string_view text,
                                      const WordSwapOptions& options,
                                      SwappedText& result) {
  const RandomKey key =
      RandomKey(options.seed).derive("word swap").derive(to_string(options.profile));
  std::vector<WordPlace> chosen;
  for_each_line(text, [&](uint64_t number, std::string_view line) {
    const std::vector<WordPlace> words = find_words(line);
    std::vector<WordPlace> eligible;
    for (const WordPlace& word : words) {
      if (is_eligible(line.substr(word.begin, word.end - word.begin), options))
        eligible.push_back(word);
    }
    result.num_words += static_cast<int64_t>(words.size());
    result.num_eligible += static_cast<int64_t>(eligible.size());
    if (eligible.empty()) return;
    RandomStream random(key.derive(number));
    const size_t count = count_swaps(words.size(), eligible.size(), options, random);
    std::vector<size_t> drawn = draw_distinct(eligible.size(), count, random);
    std::sort(drawn.begin(), drawn.end());
    const auto start = static_cast<size_t>(line.data() - text.data());
    for (const size_t i : drawn) {
      chosen.push_back({start + eligible[i].begin, start + eligible[i].end});
    }
  });
  return chosen;
}

std::vector<WordPlace> choose_in_stream(std::string_view text,
                                        const WordSwapOptions& options,
                                        SwappedText& result) {
  const RandomKey key = RandomKey(options.seed).derive("word swap").derive(to_string(options.unit));
  RandomStream random(key);
  std::vector<WordPlace> candidates;  // one eligible word of each token that has any
  int64_t num_tokens = 0;
  for_each_token(
      text,
      [&](std::string_view token) {
        ++num_tokens;
        std::vector<WordPlace> eligible;
        for (const WordPlace& word : find_words(token)) {
          ++result.num_words;
          if (is_eligible(token.substr(word.begin, word.end - word.begin), options)) {
            eligible.push_back(word);
          }
        }
        result.num_eligible += static_cast<int64_t>(eligible.size());
        if (eligible.empty()) return;
        const WordPlace& word = eligible[eligible.size() == 1 ? 0 : random.below(eligible.size())];
        const auto start = static_cast<size_t>(token.data() - text.data());
        candidates.push_back({start + word.begin, start + word.end});
      },
      [&] { ++num_tokens; });
  const auto wanted =
      static_cast<size_t>(std::llround(options.rate * static_cast<double>(num_tokens)));
  const size_t count = std::min(wanted, candidates.size());
  std::vector<size_t> drawn = draw_distinct(candidates.size(), count, random);
  std::sort(drawn.begin(), drawn.end());
  std::vector<WordPlace> chosen;
  for (const size_t i : drawn) chosen.push_back(candidates[i]);
  return chosen;
}

}  // namespace

std::string to_string(SwapProfile profile) {
  return profile == SwapProfile::kStrict ? "strict" : "published";
}

SwapProfile swap_profile_from_string(const std::string& name) {
  if (name == "strict") return SwapProfile::kStrict;
  if (name == "published") return SwapProfile::kPublished;
  throw UsageError("swap profile: " + unknown_name(name, {"strict", "published"}));
}

std::string to_string(SwapUnit unit) { return unit == SwapUnit::kLine ? "line" : "stream"; }

SwapUnit swap_unit_from_string(const std::string& name) {
  if (name == "line") return SwapUnit::kLine;
  if (name == "stream") return SwapUnit::kStream;
  throw UsageError("swap unit: " + unknown_name(name, {"line", "stream"}));
}

double SwappedText::word_rate() const {
  return num_words == 0 ? 0.0
                        : static_cast<double>(num_swapped_words) / static_cast<double>(num_words);
}

double SwappedText::token_rate() const {
  return swapped.empty()
             ? 0.0
             : static_cast<double>(num_swapped_tokens) / static_cast<double>(swapped.size());
}

bool is_stop_word(std::string_view word) {
  return std::binary_search(kStopWords.begin(), kStopWords.end(), word);
}

std::vector<WordPlace> find_words(std::string_view line) {
  std::vector<WordPlace> words;
  size_t i = 0;
  while (i < line.size()) {
    // Characters in front of a word may be stripped; white space and the rest end it.
    const size_t length = word_character_length(line.substr(i));
    if (length == 0 || is_stripped(line[i])) {
      i += std::max(length, size_t{1});
      continue;
    }
    const size_t begin = i;
    while (i < line.size()) {
      const size_t next = word_character_length(line.substr(i));
      if (next == 0) break;
      i += next;
    }
    words.push_back({begin, i});
  }
  return words;
}

SwappedText swap_words(std::string_view text, const WordSwapOptions& options) {
  if (!(options.rate >= 0 && options.rate <= 1)) {
    throw UsageError("word swap: rate must be in [0, 1], got " + std::to_string(options.rate));
  }
  if (options.unit == SwapUnit::kStream && options.profile == SwapProfile::kPublished) {
    throw UsageError("word swap: unit stream belongs to the profile strict, got published");
  }
  SwappedText result;
  const std::vector<WordPlace> chosen = options.unit == SwapUnit::kLine
                                            ? choose_by_line(text, options, result)
                                            : choose_in_stream(text, options, result);
  result.num_swapped_words = static_cast<int64_t>(chosen.size());
  result.text.reserve(text.size());
  size_t copied = 0;
  for (const WordPlace& place : chosen) {
    result.text.append(text.substr(copied, place.begin - copied)).append(options.word);
    copied = place.end;
  }
  result.text.append(text.substr(copied));

  auto next = chosen.begin();
  for_each_token(
      text,
      [&](std::string_view token) {
        const auto end = static_cast<size_t>(token.data() - text.data()) + token.size();
        const bool changed = next != chosen.end() && next->begin < end;
        while (next != chosen.end() && next->begin < end) ++next;
        result.swapped.push_back(changed ? 1 : 0);
        result.num_swapped_tokens += changed ? 1 : 0;
      },
      [&] { result.swapped.push_back(0); });
  return result;
}

}  // namespace elliptical::data
