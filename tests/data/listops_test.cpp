// SPDX-License-Identifier: MIT
#include "elliptical/data/sequence/listops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "elliptical/base/errors.h"
#include "elliptical/data/catalog.h"
#include "elliptical/data/sequence/listops_file.h"
#include "elliptical/data/sequence/listops_generator.h"
#include "tests/support/error_message.h"
#include "tests/support/temporary_folder.h"

namespace elliptical::data {
namespace {

using test::error_message;

struct Golden {
  int64_t value;
  const char* text;
};

// LRA-1.
constexpr Golden kGoldens[] = {
    {7, "( ( ( ( [MAX 1 ) 7 ) 2 ) ] )"},
    {1, "( ( ( ( [MED 4 ) 1 ) 0 ) ] )"},
    {0, "( ( ( ( ( [SM 6 ) 5 ) 9 ) 0 ) ] )"},
    {6, "( ( ( ( [SM 5 ) 4 ) ( ( ( ( ( ( [MED 7 ) 1 ) 9 ) 1 ) 9 ) ] ) ) ] )"},
    {2, "( ( ( [MED ( ( ( ( ( [MIN 1 ) 1 ) ( ( ( [MAX 6 ) 1 ) ] ) ) 7 ) ] ) ) 4 ) ] )"},
    {6,
     "( ( ( ( ( [MED 5 ) ( ( ( [MED 6 ) 1 ) ] ) ) ( ( ( ( ( ( [MAX 2 ) ( ( ( [MIN 1 ) 4 ) ] ) ) 8 "
     ") "
     "4 ) 7 ) ] ) ) 9 ) ] )"},
};
constexpr Golden kPlain = {5, "[MAX 4 3 [MIN 2 3 ] 1 0 [MED 1 5 8 9 2 ] ]"};

TEST(ListOps, Lra1ValuesOfTheSpecification) {
  for (const Golden& golden : kGoldens) {
    EXPECT_EQ(listops_value(parse_listops(golden.text, "f")), golden.value) << golden.text;
  }
  EXPECT_EQ(listops_value(parse_listops(kPlain.text, "f")), kPlain.value);
}

TEST(ListOps, Lra1ParsingAndPrintingAreInverse) {
  for (const Golden& golden : kGoldens) {
    const auto tokens = parse_listops(golden.text, "f");
    EXPECT_EQ(print_binarised_listops(tokens), golden.text);
    EXPECT_EQ(parse_listops(print_listops(tokens), "f"), tokens);
  }
  EXPECT_EQ(print_listops(parse_listops(kPlain.text, "f")), kPlain.text);
  EXPECT_EQ(print_binarised_listops(parse_listops("7", "f")), "7");
  for (uint64_t draw = 0; draw < 2000; ++draw) {
    const auto tokens = *draw_listops(RandomKey(3), draw);
    ASSERT_EQ(parse_listops(print_listops(tokens), "f"), tokens);
    ASSERT_EQ(parse_listops(print_binarised_listops(tokens), "f"), tokens);
  }
}

TEST(ListOps, IdsAreTheCanonicalOnes) {
  EXPECT_EQ(parse_listops("[MIN [MAX 0 ] [MED 9 ] [SM 1 ] ]", "f"),
            (std::vector<int32_t>{1, 2, 6, 5, 3, 15, 5, 4, 7, 5, 5}));
  EXPECT_EQ(listops_vocabulary().size(), 17U);
}

TEST(ListOps, DepthCountsTheDigits) {
  EXPECT_EQ(listops_depth(parse_listops("4", "f")), 1);
  EXPECT_EQ(listops_depth(parse_listops("[MAX 1 [MIN 2 3 ] ]", "f")), 3);
  EXPECT_EQ(listops_depth(parse_listops("[MAX [MIN 2 ] 1 ]", "f")), 3);
}

TEST(ListOps, BadExpressionsSayWhatIsWrong) {
  const auto message = [](const std::string& text) {
    return error_message<DataError>([&] { parse_listops(text, "f.tsv:7"); });
  };
  EXPECT_EQ(message(""), "f.tsv:7: must be an expression, is empty (token 0)");
  EXPECT_EQ(message("[MAX 1 7"), "f.tsv:7: must have a ] for each operator, lacks 1 (token 3)");
  EXPECT_EQ(message("[MAX 1 ] ]"),
            "f.tsv:7: must be one expression, goes on after its end (token 4)");
  EXPECT_EQ(message("] 1"), "f.tsv:7: must have an operator before each ], has none (token 1)");
  EXPECT_EQ(message("[MAX ]"),
            "f.tsv:7: must have an argument for each operator, has none (token 2)");
  EXPECT_EQ(message("( ( [MAX 1 ) ]"), "f.tsv:7: must have a ) for each (, lacks 1 (token 6)");
  EXPECT_EQ(message("[MAX 1 ) ]"), "f.tsv:7: must have a ( before each ), has none (token 3)");
  EXPECT_EQ(message("[MAX 12 ]"),
            "f.tsv:7: must be [MIN, [MAX, [MED, [SM, ], a digit or a round bracket, is \"12\" "
            "(token 2)");
  std::string bomb;
  for (int i = 0; i < 100'000; ++i) bomb += "[MAX ";
  EXPECT_EQ(message(bomb), "f.tsv:7: must be nested at most 100 deep, is deeper (token 100)");
}

double mean_length(int64_t depth) { return depth == 10 ? 1 : 1.25 + 1.5 * mean_length(depth + 1); }

TEST(ListOpsGenerator, Lra2StatisticsOfRawDraws) {
  constexpr int kDraws = 20'000;
  int digits = 0, kept = 0;
  double sum = 0, squares = 0;
  for (uint64_t draw = 0; draw < kDraws; ++draw) {
    const auto tokens = *draw_listops(RandomKey(11), draw);
    const auto length = static_cast<double>(tokens.size());
    digits += tokens.size() == 1 ? 1 : 0;
    kept += length > 500 && length < 2000 ? 1 : 0;
    sum += length;
    squares += length * length;
  }
  EXPECT_NEAR(mean_length(1), 132.05, 0.01);
  // Four standard errors of a share, and of the mean.
  const auto four_sigma = [](double p) { return 4 * std::sqrt(p * (1 - p) / kDraws); };
  EXPECT_NEAR(digits / double{kDraws}, 0.75, four_sigma(0.75));
  EXPECT_NEAR(kept / double{kDraws}, 0.084, 2 * four_sigma(0.084));  // itself an estimate of 20,000
  const double mean = sum / kDraws;
  const double error = std::sqrt((squares / kDraws - mean * mean) / kDraws);
  EXPECT_NEAR(mean, 132.05, 4 * error);
}

constexpr ListOpsOptions kSmall = {.train_examples = 2000, .eval_examples = 300};

TEST(ListOpsGenerator, Lra3WhatIsKept) {
  const ListOpsDraws found = find_listops_draws(kSmall);
  ASSERT_EQ(found.draws.size(), 2600U);
  std::set<std::string> seen;
  std::array<int, 10> values = {};
  for (size_t i = 0; i < found.draws.size(); ++i) {
    const auto tokens =
        *draw_listops(RandomKey(kSmall.seed).derive("listops"), found.draws[i], kMaxListOpsLength);
    EXPECT_GE(tokens.size(), 501U);
    EXPECT_LE(tokens.size(), 1999U);
    EXPECT_LE(listops_depth(tokens), 10);
    EXPECT_EQ(listops_value(tokens), found.values[i]);
    ++values[found.values[i]];
    EXPECT_TRUE(seen.insert(print_listops(tokens)).second) << "twice";
    std::vector<int> arguments;
    for (const int32_t token : tokens) {
      if (token == kListOpsEnd) {
        ASSERT_GE(arguments.back(), 2);
        ASSERT_LE(arguments.back(), 10);
        arguments.pop_back();
      }
      if (token >= kListOpsEnd && !arguments.empty()) ++arguments.back();
      if (token < kListOpsEnd) arguments.push_back(0);
    }
  }
  for (const int count : values) EXPECT_GT(count, 0);
}

TEST(ListOpsGenerator, SameSetFromAnyNumberOfThreads) {
  ListOpsOptions one = kSmall, five = kSmall;
  one.threads = 1;
  five.threads = 5;
  const ListOpsDraws a = find_listops_draws(one), b = find_listops_draws(five);
  EXPECT_EQ(a.draws, b.draws);
  EXPECT_EQ(a.values, b.values);
  five.seed = 2;
  EXPECT_NE(find_listops_draws(five).values, a.values);
}

TEST(ListOpsGenerator, CacheIsCheckedAndMadeAnew) {
  const test::TemporaryFolder folder;
  const ListOpsOptions options = {.train_examples = 50, .eval_examples = 10};
  const ListOpsDraws made = cached_listops_draws(options, folder.path());
  const std::string name = "listops-seed-1-70.draws";
  const std::string text = folder.read(name);
  ASSERT_FALSE(text.empty());
  EXPECT_EQ(cached_listops_draws(options, folder.path()).draws, made.draws);
  for (const size_t place : {size_t{3}, size_t{70}, text.size() - 1}) {
    std::string damaged = text;
    damaged[place] = static_cast<char>(damaged[place] ^ 1);
    folder.write(name, damaged);
    EXPECT_EQ(cached_listops_draws(options, folder.path()).draws, made.draws);
    EXPECT_EQ(folder.read(name), text) << "not made anew";
  }
  folder.write(name, text.substr(0, 100));
  EXPECT_EQ(cached_listops_draws(options, folder.path()).values, made.values);
  // A folder that can not be made costs time, nothing else.
  EXPECT_EQ(cached_listops_draws(options, folder.path() / name / "below").draws, made.draws);
}

TEST(ListOpsGenerator, IsASetOfSequences) {
  const OpenSequencesOptions options = {.train_examples = 40, .eval_examples = 10};
  const auto train = open_sequences("listops", Split::kTrain, options);
  const auto test = open_sequences("listops", Split::kTest, options);
  EXPECT_EQ(train->size(), 40);
  EXPECT_EQ(test->size(), 10);
  EXPECT_EQ(train->num_classes(), 10);
  EXPECT_EQ(train->num_ids(), 17);
  EXPECT_EQ(train->form().max_length, 2000);
  const SequenceExample example = train->get(7);
  EXPECT_EQ(listops_value(example.ids), example.label);
  EXPECT_EQ(train->label(7), example.label);
  EXPECT_EQ(example.facts.at("length"), static_cast<int64_t>(example.ids.size()));
  EXPECT_EQ(example.facts.at("depth"), listops_depth(example.ids));
  EXPECT_NE(test->get(0).ids, train->get(0).ids);
  EXPECT_NE(train->fingerprint(), test->fingerprint());
  EXPECT_EQ(train->fingerprint(), open_sequences("listops", Split::kTrain, options)->fingerprint());
  EXPECT_THROW(train->get(40), std::out_of_range);
  EXPECT_EQ(error_message<ConfigError>(
                [] { open_sequences("listops", Split::kTrain, {.max_length = 1000}); }),
            "data: max_length of listops must be at least 1999, got 1000");
}

std::unique_ptr<SequenceSet> open_lines(const test::TemporaryFolder& folder,
                                        const std::string& text,
                                        int64_t max_length = 0) {
  folder.write("basic_train.tsv", text);
  return open_sequences(folder.path().string(), Split::kTrain, {.max_length = max_length});
}

TEST(ListOpsFile, ReadsTheFormOfLongRangeArena) {
  const test::TemporaryFolder folder;
  const auto set = open_lines(
      folder, "Source\tTarget\r\n( ( ( [MAX 1 ) 7 ) ] )\t7\r\n( ( ( [MIN 1 ) 7 ) ] )\t1\r\n");
  ASSERT_EQ(set->size(), 2);
  EXPECT_EQ(set->get(0).ids, (std::vector<int32_t>{2, 7, 13, 5}));
  EXPECT_EQ(set->get(0).label, 7);
  EXPECT_EQ(set->get(1).label, 1);
  EXPECT_EQ(set->get(1).facts.at("depth"), 2);
  EXPECT_EQ(set->origin(1), (folder.path() / "basic_train.tsv").string() + ":3");
  EXPECT_EQ(error_message<DataError>([&] { open_sequences(folder.path().string(), Split::kTest); }),
            folder.path().string() + ": must hold the split test, does not");
}

TEST(ListOpsFile, D4BadLinesAreNamed) {
  const test::TemporaryFolder folder;
  const std::string file = (folder.path() / "basic_train.tsv").string();
  const auto message = [&](const std::string& line) {
    return error_message<DataError>(
        [&] { open_lines(folder, "Source\tTarget\r\n3\t3\r\n" + line + "\r\n"); });
  };
  const std::string columns =
      file + ":3: must have 2 columns with a tab between, an expression and its value";
  EXPECT_EQ(message("( ( ( [MAX 1 ) 7 ) ] )"), columns);
  EXPECT_EQ(message("3\t3\t3"), columns);
  EXPECT_EQ(message("[MAX 1 7 ]\t1"), file + ":3: the value must be 7, is 1");
  EXPECT_EQ(message("[MAX 1 7 ]\t11"), file + ":3: the value must be a digit, is \"11\"");
  EXPECT_EQ(message("[MAX 1 7\t7"),
            file + ":3: must have a ] for each operator, lacks 1 (token 3)");
  EXPECT_EQ(message(std::string("3\t\0", 3)), file + ":3: must be text, has a NUL byte (byte 3)");
  EXPECT_EQ(message(std::string(size_t{2} << 20, '1')),
            file + ":3: must have at most 1048576 bytes in a line, has more");
  EXPECT_EQ(error_message<DataError>([&] { open_lines(folder, "Source\tTarget\r\n"); }),
            file + ": must have lines, has none");
  EXPECT_EQ(error_message<DataError>([&] { open_lines(folder, "3\t3\n[MAX 1 1 ]\t1\n", 3); }),
            file + ":2: the value must be a digit, is \"[MAX 1 1 ]\"");
  EXPECT_EQ(error_message<DataError>([&] { open_lines(folder, "3\t3\n1\t[MAX 1 1 ]\n", 3); }),
            file + ":2: must have at most 3 tokens, has 4 (a larger maximum length takes it)");
}

TEST(ListOpsFile, AFileThatIsCutMeanwhileIsAnError) {
  const test::TemporaryFolder folder;
  const auto set = open_lines(folder, "3\t3\n7\t[MAX 1 7 ]\n");
  EXPECT_EQ(set->get(1).label, 7);
  folder.write("basic_train.tsv", "3\t3\n");
  EXPECT_EQ(error_message<DataError>([&] { set->get(1); }),
            set->origin(1) + ": changed while it was in use");
}

TEST(ListOpsFile, EveryPublishedExpressionHasItsValue) {
  if (!locate_data("listops-2018")) GTEST_SKIP() << "listops is not below $ELLIPTICAL_DATA";
  const auto set = open_sequences("listops-2018", Split::kTest);  // evaluates each
  EXPECT_EQ(set->size(), 10'000);
  size_t longest = 0;
  double sum = 0;
  for (int64_t i = 0; i < set->size(); ++i) {
    const SequenceExample example = set->get(i);
    ASSERT_EQ(listops_value(example.ids), example.label) << set->origin(i);
    longest = std::max(longest, example.ids.size());
    sum += static_cast<double>(example.ids.size());
  }
  EXPECT_EQ(longest, 939U);
  EXPECT_NEAR(sum / 10'000, 43, 0.5);  // the mean is published without decimals
}

}  // namespace
}  // namespace elliptical::data
