// SPDX-License-Identifier: MIT
//
// Word swap: damage to the text that a language model is evaluated on, as in the paper. Some words
// of each raw line are replaced by `AAA`, stop-words excepted, before the text is cut into tokens;
// so all models see the same damage at the same places, and inputs and targets are damaged alike.
//
// A word is a run of word characters or ' - * @ inside a piece between white space, without the
// ' - _ * @ in front of it: `@-@` has none, `<unk>` has `unk`. Per line with w words and E eligible
// ones n = max(floor(rate * w), 1) words are swapped, or all E if there are fewer. The profile
// `published` makes, as the released code does, one swap less with probability 1 / (M + 1), where M
// is the number of eligible words before the last swap. (The released file has the rate 0.015, the
// paper 0.025.)
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace elliptical::data {

enum class SwapProfile { kStrict, kPublished };
std::string to_string(SwapProfile profile);
SwapProfile swap_profile_from_string(const std::string& name);  ///< UsageError for unknown names

enum class SwapUnit {
  kLine,    ///< the rule above, for each line
  kStream,  ///< exactly round(rate * T) of the T tokens (with `<eos>`) that have an eligible word
};
std::string to_string(SwapUnit unit);
SwapUnit swap_unit_from_string(const std::string& name);

struct WordSwapOptions {
  double rate = 0.025;
  uint64_t seed = 1;
  SwapProfile profile = SwapProfile::kStrict;
  SwapUnit unit = SwapUnit::kLine;  ///< kStream only with kStrict
  std::string word = "AAA";
};

struct SwappedText {
  std::string text;              ///< as many tokens as before
  std::vector<uint8_t> swapped;  ///< per token of the stream, `<eos>` included: 1 if it was changed
  int64_t num_words = 0, num_eligible = 0;
  int64_t num_swapped_words = 0;   ///< a token can hold two words
  int64_t num_swapped_tokens = 0;  ///< ones in `swapped`

  /// What share of the words, and of the tokens with `<eos>`, was changed.
  double word_rate() const;
  double token_rate() const;
};

/// `text` must have passed check_text. Throws UsageError for options that make no sense.
SwappedText swap_words(std::string_view text, const WordSwapOptions& options);

/// Where the words of a line are, in order.
struct WordPlace {
  size_t begin = 0, end = 0;
};
std::vector<WordPlace> find_words(std::string_view line);

/// The 179 English stop-words of NLTK; case matters.
bool is_stop_word(std::string_view word);

}  // namespace elliptical::data
