// SPDX-License-Identifier: MIT
#include "elliptical/data/text/vocabulary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "elliptical/base/errors.h"
#include "elliptical/base/random.h"
#include "elliptical/data/text/characters.h"
#include "elliptical/data/text/tokens.h"
#include "tests/support/error_message.h"

namespace elliptical::data {
namespace {

using test::error_message;
using Ids = std::vector<int32_t>;

std::vector<std::string> words_of(const Vocabulary& vocabulary) {
  std::vector<std::string> words;
  for (int32_t id = 0; id < vocabulary.size(); ++id) words.push_back(vocabulary.word(id));
  return words;
}

TEST(Vocabulary, OrdersByFrequencyThenByAppearance) {
  const auto [vocabulary, stream] = build_vocabulary("b a c a\n<unk> c d a\n");
  EXPECT_EQ(words_of(vocabulary), (std::vector<std::string>{"<eos>", "a", "c", "b", "<unk>", "d"}));
  EXPECT_EQ(stream, (Ids{3, 1, 2, 1, 0, 4, 2, 5, 1, 0}));
  EXPECT_EQ(encode("d x\n", vocabulary), (Ids{5, 4, 0}));
  EXPECT_FALSE(vocabulary.contains("x"));
}

TEST(Vocabulary, TextWithoutUnkGetsItLast) {
  const auto [vocabulary, stream] = build_vocabulary("a b a\n");
  EXPECT_EQ(words_of(vocabulary), (std::vector<std::string>{"<eos>", "a", "b", "<unk>"}));
  EXPECT_EQ(vocabulary.unk(), 3);
}

TEST(Vocabulary, CanBeCut) {
  const std::string text = "a a a b b c\n";
  EXPECT_EQ(words_of(build_vocabulary(text, 3).vocabulary),
            (std::vector<std::string>{"<eos>", "a", "<unk>"}));
  EXPECT_EQ(build_vocabulary(text, 3).stream, (Ids{1, 1, 1, 2, 2, 2, 0}));
  EXPECT_EQ(build_vocabulary(text, 1).vocabulary.size(), 2);
  EXPECT_EQ(build_vocabulary(text, 100).vocabulary.size(), 5);
  const std::string with_unk = "<unk> <unk> a a a b\n";
  EXPECT_EQ(words_of(build_vocabulary(with_unk, 3).vocabulary),
            (std::vector<std::string>{"<eos>", "a", "<unk>"}));
}

TEST(Vocabulary, ReadsWhatItWrote) {
  const Vocabulary vocabulary = build_vocabulary("b a c a \xC3\xA9\n").vocabulary;
  EXPECT_EQ(words_of(Vocabulary::from_text(vocabulary.to_text(), "v")), words_of(vocabulary));
}

TEST(Vocabulary, ReadsWhatItWroteOfAnyText) {
  // Bytes that mean something to a reader of lines, terminals or Unicode; no NUL, and valid UTF-8.
  const std::string pieces[] = {"a",
                                "\x1B",
                                "\x7F",
                                "\xC2\xA0",
                                "\xE2\x80\xA8",
                                "\xC2\x85",
                                "\xEF\xBB\xBF",
                                "\xE3\x80\x80",
                                "\r",
                                "\v",
                                "\"",
                                "<eos>",
                                "<unk>",
                                " ",
                                "\n",
                                "\\n",
                                "\xF0\x9F\x98\x80",
                                "#",
                                "\xE2\x80\x8B",
                                "b"};
  RandomStream random(RandomKey(11));
  for (int round = 0; round < 300; ++round) {
    std::string text = "x ";
    for (uint64_t i = random.below(60); i > 0; --i) text += pieces[random.below(std::size(pieces))];
    const auto [vocabulary, stream] = build_vocabulary(text, round % 3 == 0 ? 5 : 0);
    const Vocabulary read = Vocabulary::from_text(vocabulary.to_text(), "v");
    ASSERT_EQ(words_of(read), words_of(vocabulary)) << text;
    ASSERT_EQ(encode(text, read), stream) << text;
  }
  const std::string longest(kMaxWordBytes, 'w');
  const Vocabulary vocabulary = build_vocabulary(longest + "\n").vocabulary;
  EXPECT_EQ(words_of(Vocabulary::from_text(vocabulary.to_text(), "v")), words_of(vocabulary));
}

TEST(Vocabulary, D3RefusesDamagedFilesAndIds) {
  const auto error = [](const std::string& text) {
    return error_message<DataError>([&] { Vocabulary::from_text(text, "v.txt"); });
  };
  EXPECT_EQ(error(""), "v.txt: vocabulary must start with <eos> and hold <unk>");
  EXPECT_EQ(error("<eos>\na\n"), "v.txt: vocabulary must start with <eos> and hold <unk>");
  EXPECT_EQ(error("<unk>\n<eos>\n"), "v.txt: vocabulary must start with <eos> and hold <unk>");
  EXPECT_EQ(error("<eos>\n<unk>\n<unk>\n"), "v.txt:3: word \"<unk>\" comes twice");
  EXPECT_EQ(error("<eos>\n\xFF\n"), "v.txt:2: must be UTF-8, is not at offset 6");
  const Vocabulary vocabulary = build_vocabulary("a\n").vocabulary;
  for (const int32_t id : {-1, 3, 1 << 30}) {
    EXPECT_EQ(error_message<DataError>([&] { vocabulary.word(id); }),
              "vocabulary: id must be in [0, 3), got " + std::to_string(id));
  }
}

TEST(Vocabulary, AgreesWithTheObviousWay) {
  RandomStream random(RandomKey(7));
  std::string text;
  for (int line = 0; line < 300; ++line) {
    const uint64_t length = random.below(30);
    for (uint64_t i = 0; i < length; ++i) {
      const uint64_t u = random.below(2000), v = random.below(2000);
      text += "w" + std::string(u * v % 17, 'x') + std::to_string(u * v / 4000) + " ";
    }
    text += "\n";
  }
  std::map<std::string, std::pair<int, int>> counts;  // word -> (-count, first appearance)
  std::istringstream stream(text);
  std::string word;
  while (stream >> word) {
    const int order = static_cast<int>(counts.size());
    --counts.try_emplace(word, 0, order).first->second.first;
  }
  std::vector<std::pair<std::pair<int, int>, std::string>> ranks;
  for (const auto& [key, rank] : counts) ranks.emplace_back(rank, key);
  std::sort(ranks.begin(), ranks.end());
  std::vector<std::string> expected = {"<eos>"};
  for (const auto& [rank, key] : ranks) expected.push_back(key);
  expected.emplace_back("<unk>");
  const auto built = build_vocabulary(text);
  EXPECT_EQ(words_of(built.vocabulary), expected);
  EXPECT_EQ(built.stream, encode(text, built.vocabulary));
  EXPECT_GT(expected.size(), 1000u);  // the index has grown
}

TEST(Tokens, LinesEndWithEos) {
  const Vocabulary vocabulary = build_vocabulary("a b\n").vocabulary;
  EXPECT_EQ(encode("", vocabulary), (Ids{}));
  EXPECT_EQ(encode("\n", vocabulary), (Ids{0}));
  EXPECT_EQ(encode("a", vocabulary), (Ids{1, 0}));  // D3: no trailing newline
  EXPECT_EQ(encode("a\n", vocabulary), (Ids{1, 0}));
  EXPECT_EQ(encode(" \t a  b \r\n\n \n", vocabulary), (Ids{1, 2, 0, 0, 0}));
  EXPECT_EQ(encode("a\xC2\xA0"
                   "b\xE3\x80\x80"
                   "a\xE2\x80\x8B\n",
                   vocabulary),
            (Ids{1, 2, 3, 0}));
  EXPECT_EQ(decode({1, 2, 0, 1, 0}, vocabulary), "a b\na\n");
}

TEST(Tokens, WhiteSpaceIsThatOfPython) {
  const std::vector<std::string> spaces = {" ",
                                           "\t",
                                           "\n",
                                           "\v",
                                           "\f",
                                           "\r",
                                           "\x1C",
                                           "\x1D",
                                           "\x1E",
                                           "\x1F",
                                           "\xC2\x85",
                                           "\xC2\xA0",
                                           "\xE1\x9A\x80",
                                           "\xE2\x80\x80",
                                           "\xE2\x80\x8A",
                                           "\xE2\x80\xA8",
                                           "\xE2\x80\xA9",
                                           "\xE2\x80\xAF",
                                           "\xE2\x81\x9F",
                                           "\xE3\x80\x80"};
  for (const std::string& space : spaces) EXPECT_EQ(space_length(space + "x"), space.size());
  for (const std::string word :
       {"x", "\x1B", "\xC2\x86", "\xE2\x80\x8B", "\xE3\x80\x81", "\xC2", ""}) {
    EXPECT_EQ(space_length(word), 0u);
  }
}

TEST(Tokens, WordCharactersAreLettersNumbersAndUnderscore) {
  for (const char32_t c : {U'a', U'Z', U'0', U'9', U'_', char32_t{0xE9}, char32_t{0x4E2D},
                           char32_t{0xBD}, char32_t{0x1D7FF}, char32_t{0xAA}}) {
    EXPECT_TRUE(is_word_character(c)) << static_cast<uint32_t>(c);
  }
  for (const char32_t c : {U'-', U'\'', U'<', U'@', U'[', U'`', U'{', char32_t{0x80},
                           char32_t{0xA0}, char32_t{0x300}, char32_t{0x2014}, char32_t{0x10FFFF}}) {
    EXPECT_FALSE(is_word_character(c)) << static_cast<uint32_t>(c);
  }
}

std::string text_error(const std::string& text) {
  return error_message<DataError>([&] { check_text(text, "t.txt"); });
}

TEST(CheckText, D3NamesLineAndOffset) {
  EXPECT_EQ(text_error("fine \xC3\xA9\n"), "no error");
  EXPECT_EQ(text_error("a\nb \xFF\n"), "t.txt:2: must be UTF-8, is not at offset 4");
  EXPECT_EQ(text_error(std::string("a\n\nb\0c", 6)),
            "t.txt:3: must be text, has a NUL byte at offset 4");
  EXPECT_EQ(text_error("cut \xE2\x80"), "t.txt:1: must be UTF-8, is not at offset 4");
  EXPECT_EQ(text_error("long line " + std::string(100, 'x')), "no error");
}

TEST(CheckText, D3HugeWordIsRefusedHugeLineIsNot) {
  const std::string word(kMaxWordBytes, 'x');
  EXPECT_EQ(text_error("a\n" + word + "\n"), "no error");
  EXPECT_EQ(text_error("a\n" + word + "x\n"),
            "t.txt:2: must have a space in 10000 bytes, has none at offset 2");
  EXPECT_NE(text_error(std::string(1 << 20, 'x')), "no error");
  std::string line;
  for (int i = 0; i < 1'000'000; ++i) line += "word ";
  EXPECT_EQ(text_error(line), "no error");
  EXPECT_EQ(build_vocabulary(line).stream.size(), 1'000'001u);
}

}  // namespace
}  // namespace elliptical::data
