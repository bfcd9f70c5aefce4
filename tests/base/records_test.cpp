// SPDX-License-Identifier: MIT
#include "elliptical/base/records.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "elliptical/base/errors.h"
#include "elliptical/base/files.h"
#include "elliptical/base/lines.h"
#include "tests/support/error_message.h"
#include "tests/support/temporary_folder.h"

namespace elliptical {
namespace {

using test::error_message;

Record sample(int64_t step) {
  return {
      .metric = "perplexity",
      .value = 31.5 + static_cast<double>(step),
      .count = 200,
      .labels = {{"leaks_future", false}, {"rate", 1.0}, {"split", "test \"x\""}, {"step", step}}};
}

TEST(Records, HaveOneFlatLine) {
  EXPECT_EQ(to_json_line(sample(3)),
            R"({"metric":"perplexity","value":34.5,"count":200,"leaks_future":false,"rate":1.0,)"
            R"("split":"test \"x\"","step":3})");
}

TEST(Records, ReadBackTheSame) {
  const Record record = parse_record(to_json_line(sample(3)));
  EXPECT_EQ(record.metric, "perplexity");
  EXPECT_EQ(record.value, 34.5);
  EXPECT_EQ(record.count, 200);
  EXPECT_EQ(record.labels, sample(3).labels);
}

TEST(Records, KeepEveryNumber) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  for (const double value : {0.1, 1e300, 5e-324, -0.0, 3.0, inf, -inf}) {
    EXPECT_EQ(parse_record(to_json_line({.metric = "m", .value = value})).value, value);
  }
  EXPECT_TRUE(std::isnan(parse_record(to_json_line({.metric = "m", .value = std::nan("")})).value));
}

TEST(Records, TextThatIsNoUtf8IsReplaced) {
  const Record record{.metric = "m", .labels = {{"run", "caf\xE9"}}};
  EXPECT_EQ(std::get<std::string>(parse_record(to_json_line(record)).labels.at("run")),
            "caf\xEF\xBF\xBD");
}

TEST(Records, LabelsMayNotHideTheFields) {
  EXPECT_THROW(to_json_line({.metric = "m", .labels = {{"value", 3.0}}}), std::invalid_argument);
}

TEST(Records, RefusesWhatIsNone) {
  const auto error = [](const std::string& line) {
    return error_message<DataError>([&] { parse_record(line); });
  };
  EXPECT_EQ(error(""), "record: no JSON (column 1)");
  EXPECT_EQ(error("{\"metric\""), "record: no JSON (column 10)");
  EXPECT_EQ(error("3"), "record: must be an object");
  EXPECT_EQ(error("[]"), "record: nested value");
  EXPECT_EQ(error("{}"), "record: must have metric, value and count");
  EXPECT_EQ(error(R"({"metric":"m","value":1})"), "record: must have metric, value and count");
  EXPECT_EQ(error(R"({"metric":3,"value":1,"count":1})"), "record: metric must be text");
  EXPECT_EQ(error(R"({"metric":"m","value":"x","count":1})"), "record: value must be a number");
  EXPECT_EQ(error(R"({"metric":"m","value":true,"count":1})"), "record: value must be a number");
  EXPECT_EQ(error(R"({"metric":"m","value":1,"count":1.5})"),
            "record: count must be a whole number");
  EXPECT_EQ(error(R"({"metric":"m","value":1,"count":18446744073709551615})"),
            "record: whole number too large");
  EXPECT_EQ(error(R"({"metric":"m","value":1,"count":1,"a":null})"), "record: null is no value");
  EXPECT_EQ(error(R"({"metric":"m","value":1,"count":1,"a":{}})"), "record: nested value");
  EXPECT_EQ(error(R"({"metric":"m","value":1,"count":1,"a":1,"a":2})"),
            "record: key \"a\" comes twice");
  EXPECT_EQ(error(R"({"metric":"m","value":1,"count":1,"count":2})"),
            "record: key \"count\" comes twice");
  EXPECT_EQ(error("{\"a\":" + std::string(100'000, '[')), "record: nested value");
  EXPECT_NE(error(R"({"metric":"m","value":1e999,"count":1})"), "no error");
  EXPECT_NE(error(R"({"metric":"m","value":1,"count":1} x)"), "no error");
}

TEST(RecordFiles, AppendAndRead) {
  const test::TemporaryFolder folder;
  const auto path = folder.path() / "records.jsonl";
  EXPECT_TRUE(read_records(path).empty());
  for (int64_t round = 0; round < 2; ++round) {
    RecordWriter writer(path);
    writer.append(sample(2 * round));
    writer.append(sample(2 * round + 1));
    writer.sync();
  }
  const std::vector<Record> records = read_records(path);
  ASSERT_EQ(records.size(), 4u);
  for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(records[i].labels, sample(i).labels);
}

TEST(RecordFiles, R2CutAtEveryByteLosesOnlyTheCutRecord) {
  const test::TemporaryFolder folder;
  const std::string line = to_json_line({.metric = "m", .value = 0.5}) + "\n";
  const std::string text = line + line;
  for (size_t length = 0; length <= text.size(); ++length) {
    const auto path = folder.write("records.jsonl", std::string_view(text).substr(0, length));
    const size_t complete = length / line.size();
    EXPECT_EQ(read_records(path).size(), complete) << length;
    RecordWriter(path).append(sample(9));
    const std::vector<Record> records = read_records(path);
    ASSERT_EQ(records.size(), complete + 1) << length;
    EXPECT_EQ(records.back().labels, sample(9).labels);
  }
}

TEST(RecordFiles, DamageInTheMiddleNamesTheLine) {
  const test::TemporaryFolder folder;
  const auto path = folder.write(
      "r", to_json_line(sample(1)) + "\n{\"metric\":\n" + to_json_line(sample(2)) + "\n");
  EXPECT_EQ(error_message<DataError>([&] { read_records(path); }),
            path.string() + ":2: record: no JSON (column 11)");
}

TEST(RecordFiles, ResumeDropsLaterSteps) {
  const test::TemporaryFolder folder;
  const auto path = folder.path() / "r";
  const auto damaged = [](const std::string& what) { ADD_FAILURE() << what; };
  RecordWriter::truncate_after_step(path, 3, damaged);  // no file: nothing to do
  EXPECT_FALSE(std::filesystem::exists(path));
  {
    RecordWriter writer(path);
    for (const int64_t step : {1, 5, 3, 4}) writer.append(sample(step));
    writer.append({.metric = "without step"});
  }
  folder.write("r", folder.read("r") + "{\"met");
  RecordWriter::truncate_after_step(path, 3, damaged);
  const std::vector<Record> records = read_records(path);
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(records[0].labels, sample(1).labels);
  EXPECT_EQ(records[1].labels, sample(3).labels);
  EXPECT_EQ(records[2].metric, "without step");
}

TEST(RecordFiles, S3DamagedLinesAreMovedThroughNoLink) {
  const test::TemporaryFolder folder;
  const std::filesystem::path path = folder.write("records.jsonl", "no record\n"),
                              other = folder.write("other", "another's\n"),
                              aside = path.string() + ".damaged";
  std::filesystem::create_symlink(other, aside);
  RecordWriter::truncate_after_step(path, 0, [](const std::string&) {});
  EXPECT_EQ(read_file(other), "another's\n");
  EXPECT_FALSE(std::filesystem::is_symlink(aside));
  EXPECT_EQ(read_file(aside), "no record\n");
}

TEST(RecordFiles, R2DamagedLinesAreMovedAsideAndTold) {
  const test::TemporaryFolder folder;
  const auto path = folder.path() / "records.jsonl";
  const std::string good = to_json_line(sample(1)) + "\n";
  std::vector<std::string> told;
  const auto tell = [&](const std::string& what) { told.push_back(what); };
  for (const std::string bad : {"{\"metric\":", "[1]", ""}) {
    write_file_atomically(path, good + bad + "\n" + good);
    RecordWriter::truncate_after_step(path, 3, tell);
    EXPECT_EQ(read_file(path), good + good);
  }
  EXPECT_EQ(read_file(folder.path() / "records.jsonl.damaged"), "{\"metric\":\n[1]\n\n");
  ASSERT_EQ(told.size(), 3);
  EXPECT_TRUE(told[0].starts_with(path.string() + ":2: record: ")) << told[0];
  EXPECT_TRUE(told[0].ends_with(" (left out, moved to " + path.string() + ".damaged)")) << told[0];
}

TEST(RecordFiles, WhatIsAppendedWhileOthersDropRecordsIsKept) {
  const test::TemporaryFolder folder;
  const auto path = folder.path() / "records.jsonl";
  RecordWriter measuring(path), training(path);
  training.append(sample(9));
  RecordWriter::truncate_after_step(path, 3, {});  // another file is there now
  measuring.append(sample(1));
  training.append(sample(2));
  ASSERT_EQ(read_records(path).size(), 2);
  EXPECT_EQ(read_records(path)[0].labels, sample(1).labels);
}

TEST(RecordFiles, C3FullDiskIsNamed) {
  const std::string message =
      error_message<FileError>([] { RecordWriter("/none/r").append(sample(1)); });
  EXPECT_EQ(message, "/none/r: can not open: No such file or directory");
}

TEST(Records, DamagedLinesCanBeLeftOut) {
  const test::TemporaryFolder folder;
  const std::string good = to_json_line(sample(1)) + "\n";
  const auto path = folder.write("records.jsonl", good + "[]\n" + good + "{");
  std::vector<std::string> damaged;
  const auto records =
      read_records(path, [&](const std::string& line) { damaged.push_back(line); });
  EXPECT_EQ(records.size(), 2);
  EXPECT_EQ(damaged, std::vector<std::string>({path.string() + ":2: record: nested value"}));
}

TEST(RecordFiles, S1LongLinesAreNamedAndLeftOut) {
  const test::TemporaryFolder folder;
  const std::string good = to_json_line(sample(1)) + "\n", path_name = "records.jsonl";
  const std::string beginning = "{\"metric\":\"" + std::string(kMaxLineBytes, 'x');
  const auto path = folder.write(path_name, good + beginning + "\n" + good);
  std::vector<std::string> told;
  const auto tell = [&](const std::string& line) { told.push_back(line); };
  EXPECT_EQ(read_records(path, tell).size(), 2);
  const std::string reason = ":2: record: must have at most 1048576 bytes, has more";
  EXPECT_EQ(told, std::vector<std::string>({path.string() + reason}));
  RecordWriter::truncate_after_step(path, 3, tell);
  EXPECT_EQ(folder.read(path_name), good + good);
  EXPECT_EQ(folder.read("records.jsonl.damaged"), beginning.substr(0, kMaxLineBytes) + "\n");
}

TEST(RecordFiles, R2AnEndIsCutHoweverLongItIs) {
  const test::TemporaryFolder folder;
  const std::string good = to_json_line(sample(1)) + "\n";
  for (const size_t length :
       {size_t{0}, size_t{1}, (size_t{1} << 16) - 1, size_t{1} << 16, size_t{200'000}}) {
    for (const std::string& start : {std::string(), good}) {
      const auto path = folder.write("r", start + std::string(length, 'x'));
      RecordWriter(path).append(sample(1));
      EXPECT_EQ(folder.read("r"), start + good) << length;
    }
  }
}

TEST(Lines, PiecesMakeNoDifference) {
  const std::string text = "a\n\nbc\n" + std::string(kMaxLineBytes + 2, 'd') + "\n" +
                           std::string(kMaxLineBytes, 'e') + "\nrest";
  const auto lines_by = [&](size_t step) {
    std::vector<std::tuple<int64_t, std::string, bool>> lines;
    LineSplitter splitter(
        [&](const Line& line) { lines.emplace_back(line.number, line.text, line.is_whole); });
    for (size_t i = 0; i < text.size(); i += step)
      splitter.take(std::string_view(text).substr(i, step));
    return lines;
  };
  const auto whole = lines_by(text.size());
  ASSERT_EQ(whole.size(), 5);
  EXPECT_EQ(whole[2], std::tuple(3, "bc", true));
  EXPECT_EQ(whole[3], std::tuple(4, std::string(kMaxLineBytes, 'd'), false));
  EXPECT_EQ(whole[4], std::tuple(5, std::string(kMaxLineBytes, 'e'), true));
  for (const size_t step : {size_t{1}, size_t{3}, kMaxLineBytes}) EXPECT_EQ(lines_by(step), whole);
}

}  // namespace
}  // namespace elliptical
