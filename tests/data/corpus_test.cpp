// SPDX-License-Identifier: MIT
#include "elliptical/data/text/corpus.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "elliptical/base/errors.h"
#include "elliptical/data/catalog.h"
#include "tests/support/error_message.h"
#include "tests/support/temporary_folder.h"

namespace elliptical::data {
namespace {

using test::error_message;

class CorpusFolder : public testing::Test {
 protected:
  std::string error() {
    return error_message<DataError>([&] { open_corpus(folder.path().string()); });
  }
  std::string in_folder(const std::string& text) const { return (folder.path() / text).string(); }
  test::TemporaryFolder folder;
};

TEST_F(CorpusFolder, ReadsThreeFiles) {
  folder.write("train.txt", "a b a\n\n");
  folder.write("valid.txt", "b c");
  folder.write("test.txt", "a\n");
  const Corpus corpus = open_corpus(folder.path().string());
  EXPECT_EQ(corpus.vocabulary().size(), 4);
  EXPECT_EQ(corpus.stream(Split::kTrain), (std::vector<int32_t>{1, 2, 1, 0, 0}));
  EXPECT_EQ(corpus.stream(Split::kValid), (std::vector<int32_t>{2, 3, 0}));
  EXPECT_EQ(corpus.stream(Split::kTest), (std::vector<int32_t>{1, 0}));
  EXPECT_EQ(corpus.text(Split::kValid), "b c");
  EXPECT_EQ(corpus.fingerprint().size(), 4u);
  EXPECT_EQ(open_corpus(folder.path().string(), 3).vocabulary().size(), 3);
}

TEST_F(CorpusFolder, ReadsTheNamesOfTheOfficialArchive) {
  for (const char* split : {"train", "valid", "test"}) {
    folder.write(std::string("wiki.") + split + ".tokens", std::string(split) + " <unk>\n");
  }
  const Corpus corpus = open_corpus(folder.path().string());
  EXPECT_EQ(corpus.stream(Split::kTest).size(), 3u);
  EXPECT_EQ(corpus.vocabulary().size(), 3);
}

TEST_F(CorpusFolder, OtherTextIsSplitByBlocksOfLines) {
  std::string lines;
  for (int i = 0; i < 300; ++i) lines += "a" + std::to_string(i) + "\n";
  folder.write("1.txt", lines);
  lines.clear();
  for (int i = 300; i < 400; ++i) lines += "a" + std::to_string(i) + (i < 399 ? "\n" : "");
  folder.write("2.txt", lines);
  folder.write("notes.md", "not read");
  const Corpus corpus = open_corpus(folder.path().string());
  // 400 lines: blocks of 2.
  EXPECT_EQ(corpus.text(Split::kValid).substr(0, 16), "a36\na37\na76\na77\n");
  EXPECT_EQ(corpus.text(Split::kTest).substr(0, 16), "a38\na39\na78\na79\n");
  EXPECT_EQ(corpus.stream(Split::kTrain).size() + corpus.stream(Split::kValid).size() +
                corpus.stream(Split::kTest).size(),
            800u);
}

// Merged and split anew, the text that is measured would be trained on.
TEST_F(CorpusFolder, WithoutTestTextTestIsValid) {
  for (const auto& [train, valid] :
       {std::pair("train.txt", "valid.txt"), std::pair("train.txt", "val.txt"),
        std::pair("training.txt", "validation.txt"), std::pair("train.txt", "dev.txt"),
        std::pair("Train.txt", "VALID.txt"), std::pair("wiki.train.tokens", "wiki.valid.tokens")}) {
    const test::TemporaryFolder own;
    own.write(train, "a b a\n\n");
    own.write(valid, "b c\n");
    const Corpus corpus = open_corpus(own.path().string());
    EXPECT_EQ(corpus.text(Split::kTrain), "a b a\n\n");
    EXPECT_EQ(corpus.text(Split::kValid), "b c\n");
    EXPECT_EQ(corpus.text(Split::kTest), "b c\n");
    EXPECT_EQ(corpus.description(),
              "text: " + own.path().filename().string() + ": " + train + ", " + valid +
                  " (there is no test text: test is valid); tokens: train 5, valid 3, test 3; "
                  "vocabulary: 4; unknown words: train 0.00 %, valid 50.00 %, test 50.00 %");
  }
}

TEST_F(CorpusFolder, DescriptionsNameWhatIsRead) {
  folder.write("train.txt", "a b <unk>\n");
  folder.write("valid.txt", "a b c d\n");
  folder.write("test.txt", "a\n");
  folder.write("README.txt", "about the text\n");
  const std::string name = folder.path().filename().string();
  EXPECT_EQ(open_corpus(folder.path().string()).description(),
            "text: " + name +
                ": train.txt, valid.txt, test.txt; not read: README.txt; tokens: train 4, valid 5, "
                "test 2; vocabulary: 4; unknown words: train 33.33 %, valid 50.00 %, test 0.00 %");
  EXPECT_TRUE(open_corpus("small-language")
                  .description()
                  .starts_with("text: small-language: made up; tokens: train "));
}

TEST_F(CorpusFolder, ALoneTextIsSplitByLines) {
  std::string lines;
  for (int i = 0; i < 20; ++i) lines += "a" + std::to_string(i) + "\n";
  folder.write("train.txt", lines);
  Corpus corpus = open_corpus(folder.path().string());
  EXPECT_EQ(corpus.text(Split::kValid), "a18\n");
  EXPECT_NE(corpus.description().find(": train.txt, split by lines; tokens: train 36, "),
            std::string::npos)
      << corpus.description();
  const test::TemporaryFolder many;
  for (const char* file : {"1.txt", "2.txt", "3.txt", "4.txt"}) many.write(file, lines);
  EXPECT_NE(open_corpus(many.path().string()).description().find(": 4 files, split by lines; "),
            std::string::npos);
}

TEST_F(CorpusFolder, WhatCanBeMeantInTwoWaysIsRefused) {
  struct Case {
    std::vector<const char*> files;
    std::string message;
  };
  const std::vector<Case> cases = {
      {{"train.txt", "test.txt"},
       "must hold valid.txt beside train.txt and test.txt, does not (take some lines of the text "
       "to train on, or rename the test text to valid.txt: it is then both)"},
      {{"train.txt", "notes.txt"},
       "must hold valid.txt beside train.txt, has notes.txt (rename it to valid.txt; or rename "
       "train.txt, then all .txt files are one text that is split by lines)"},
      {{"wiki.train.tokens", "notes.txt"},
       "must hold valid.txt beside wiki.train.tokens, has notes.txt (rename it to valid.txt; or "
       "rename wiki.train.tokens, then all .txt files are one text that is split by lines)"},
      {{"valid.txt"},
       "must hold train.txt beside valid.txt, does not (name the text to train on train.txt)"},
      {{"test.txt", "other.txt"},
       "must hold train.txt beside test.txt, does not (name the text to train on train.txt)"},
      {{"train.txt", "wiki.train.tokens", "wiki.valid.tokens"},
       "must hold each split once, has train.txt and wiki.train.tokens (take one of them away)"},
      {{"train.txt", "wiki.valid.tokens"},
       "must name its splits in one way, has train.txt, wiki.valid.tokens (rename or take away)"},
      {{"train.txt", "valid.txt", "val.txt"},
       "must hold each split once, has val.txt and valid.txt (take one of them away)"},
      {{"train.txt", "training.txt", "dev.txt"},
       "must hold each split once, has train.txt and training.txt (take one of them away)"},
      {{"train.txt", "TRAIN.txt", "dev.txt"},
       "must hold each split once, has TRAIN.txt and train.txt (take one of them away)"},
      {{"train.txt", "valid.txt", "Eval.txt"},
       "must say whether Eval.txt is the validation or the test text, does not (rename it to "
       "valid.txt or test.txt)"},
      {{"train.txt", "evaluation.txt"},
       "must say whether evaluation.txt is the validation or the test text, does not (rename it to "
       "valid.txt or test.txt)"},
      {{"validation.txt"},
       "must hold train.txt beside validation.txt, does not (name the text to train on train.txt)"},
      {{"training.txt", "testing.txt"},
       "must hold valid.txt beside training.txt and testing.txt, does not (take some lines of the "
       "text to train on, or rename the test text to valid.txt: it is then both)"},
      {{"en.train.txt", "en.valid.txt"},
       "must hold train.txt, valid.txt and test.txt, or files of one text, has en.train.txt, whose "
       "name says \"train\" (rename the files that are splits; or take that word out of the name, "
       "then all .txt files are one text that is split by lines)"},
      {{"book.txt", "set_DEV-2.txt"},
       "must hold train.txt, valid.txt and test.txt, or files of one text, has set_DEV-2.txt, "
       "whose "
       "name says \"dev\" (rename the files that are splits; or take that word out of the name, "
       "then all .txt files are one text that is split by lines)"}};
  for (const Case& each : cases) {
    const test::TemporaryFolder own;
    for (const char* file : each.files) own.write(file, "a b\n");
    EXPECT_EQ(error_message<DataError>([&] { open_corpus(own.path().string()); }),
              own.path().string() + ": " + each.message);
  }
}

// A word that only begins like a split is no split: "contest", "latest", "trainer".
TEST_F(CorpusFolder, NamesThatOnlyContainAWordOfSplitsAreOneText) {
  std::string lines;
  for (int i = 0; i < 20; ++i) lines += "a" + std::to_string(i) + "\n";
  for (const char* file : {"contest.txt", "latest.txt", "trainer.txt"}) folder.write(file, lines);
  EXPECT_NE(open_corpus(folder.path().string())
                .description()
                .find(": contest.txt, latest.txt, trainer.txt, split by lines; "),
            std::string::npos);
}

TEST_F(CorpusFolder, D3BadFilesAreNamed) {
  EXPECT_EQ(error(), folder.path().string() +
                         ": must hold train.txt, valid.txt and test.txt, or other .txt files");
  folder.write("a.txt", "one line\n");
  EXPECT_EQ(error(), folder.path().string() +
                         ": must have at least 20 lines of text to be split, has 1 "
                         "(or give train.txt, valid.txt and test.txt)");
  folder.write("train.txt", "a b\n");
  folder.write("valid.txt", "a\n");
  folder.write("test.txt", "");
  EXPECT_EQ(error(), in_folder("test.txt") + ": must hold words, holds none");
  folder.write("test.txt", "\n \n");
  EXPECT_EQ(error(), in_folder("test.txt") + ": must hold words, holds none");
  folder.write("test.txt", "a\nb\xC0\n");
  EXPECT_EQ(error(), in_folder("test.txt") + ":2: must be UTF-8, is not at offset 3");
  folder.write("train.txt", std::string("a\0b\n", 4));
  EXPECT_EQ(error(), in_folder("train.txt") + ":1: must be text, has a NUL byte at offset 1");
  EXPECT_EQ(error_message<DataError>([&] { open_corpus(in_folder("none")); }),
            in_folder("none") + ": must be a folder of text files");
}

TEST_F(CorpusFolder, D3SplitShorterThanAWindowIsRefused) {
  for (const char* split : {"train", "valid", "test"}) {
    folder.write(std::string(split) + ".txt", "a b c\n");
  }
  const Corpus corpus = open_corpus(folder.path().string());
  corpus.require_tokens(Split::kValid, 4);
  EXPECT_EQ(error_message<DataError>([&] { corpus.require_tokens(Split::kValid, 257); }),
            in_folder("valid.txt") +
                ": must have at least 257 tokens, has 4 (choose a smaller window or batch)");
}

TEST_F(CorpusFolder, D3ByteOrderMarksAreNoPartOfAWord) {
  const std::string mark = "\xEF\xBB\xBF";
  for (const char* split : {"train", "valid", "test"}) {
    folder.write(std::string(split) + ".txt", mark + "a b c\n");
  }
  const Corpus corpus = open_corpus(folder.path().string());
  EXPECT_EQ(corpus.vocabulary().size(), 5) << "a, b, c, end of line and unknown";
  EXPECT_TRUE(corpus.vocabulary().contains("a"));
  EXPECT_EQ(corpus.text(Split::kTest), "a b c\n");
}

TEST_F(CorpusFolder, D3ByteOrderMarksOfSeveralFilesAreNoPartOfAWord) {
  const std::string mark = "\xEF\xBB\xBF";
  std::string lines;
  for (int i = 0; i < 20; ++i) lines += "a b\n";
  folder.write("one.txt", mark + lines);
  folder.write("two.txt", mark + lines);
  EXPECT_EQ(open_corpus(folder.path().string()).vocabulary().size(), 4);
}

TEST_F(CorpusFolder, D5ChangeWhileInUseIsRefused) {
  for (const char* split : {"train", "valid", "test"}) {
    folder.write(std::string(split) + ".txt", "a b c\n");
  }
  const Corpus corpus = open_corpus(folder.path().string());
  folder.write("test.txt", "a b d\n");
  EXPECT_EQ(error_message<DataError>([&] { corpus.text(Split::kTest); }),
            in_folder("test.txt") + ": changed while it was in use");
  EXPECT_NE(open_corpus(folder.path().string()).fingerprint(), corpus.fingerprint());
}

TEST(Split, HasNames) {
  for (const Split split : kSplits) EXPECT_EQ(split_from_string(to_string(split)), split);
  EXPECT_EQ(error_message<UsageError>([] { split_from_string("tests"); }),
            "split: unknown \"tests\", did you mean \"test\"?");
}

TEST(OpenCorpus, UnknownNamesGetAdvice) {
  EXPECT_EQ(error_message<ConfigError>([] { open_corpus("wikitext2"); }),
            "data: unknown \"wikitext2\", did you mean \"wikitext-2\"?");
}

TEST(WikiText2, HasThePublishedCounts) {
  const auto place = locate_data("wikitext-2");
  if (!place) GTEST_SKIP() << "wikitext-2 is not in " << data_places("wikitext-2").back();
  const Corpus corpus = open_corpus("wikitext-2");
  EXPECT_EQ(corpus.vocabulary().size(), 33'278);
  EXPECT_EQ(corpus.stream(Split::kTrain).size(), 2'088'628u);
  EXPECT_EQ(corpus.stream(Split::kValid).size(), 217'646u);
  EXPECT_EQ(corpus.stream(Split::kTest).size(), 245'569u);
  EXPECT_EQ(corpus.vocabulary().word(1), "the");
  verify_data(find_data_set("wikitext-2"), *place);
}

}  // namespace
}  // namespace elliptical::data
