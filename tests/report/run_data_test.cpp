// SPDX-License-Identifier: MIT
#include "elliptical/report/run_data.h"

#include <gtest/gtest.h>

#include "tests/report/run_folders.h"
#include "tests/support/lines.h"
#include "tests/support/temporary_folder.h"

namespace elliptical::report {
namespace {

namespace fs = std::filesystem;
using test::has_line;
using test::Lines;

class RunDataTest : public testing::Test {
 protected:
  fs::path add(const std::string& place, const test::MadeRun& made = {}) {
    std::string records;
    for (const Record& record : test::records_of(made)) records += to_json_line(record) + "\n";
    fs::create_directories(path() / place);
    folder_.write(place + "/config.toml", test::config_text(made));
    folder_.write(place + "/records.jsonl", records);
    return path() / place;
  }
  const fs::path& path() const { return folder_.path(); }

  test::TemporaryFolder folder_;
};

TEST_F(RunDataTest, FindsRunsBelowAndSortsThem) {
  add("a/b/second", {.name = "softmax", .seed = 2});
  add("c", {.name = "softmax", .seed = 1});
  add("d", {.name = "elliptical", .seed = 7});
  fs::create_directories(path() / "notes");
  const RunCollection found = read_runs({path()}, test::tasks_of_program());
  ASSERT_EQ(found.runs.size(), 3);
  EXPECT_EQ(found.problems, Lines());
  EXPECT_EQ(found.runs[0].name, "elliptical");
  EXPECT_EQ(found.runs[0].seed, 7);
  EXPECT_EQ(found.runs[1].folder, path() / "c");
  EXPECT_EQ(found.runs[2].folder, path() / "a/b/second");
  EXPECT_EQ(found.runs[2].task, "language_model");
  EXPECT_EQ(found.runs[2].records.size(), 2);
  EXPECT_TRUE(found.runs[2].snapshot.empty());
}

TEST_F(RunDataTest, DepthIsLimited) {
  add("1/2/3/4");
  add("1/2/3/b/5");
  EXPECT_EQ(read_runs({path()}, test::tasks_of_program()).runs.size(), 1);
}

TEST_F(RunDataTest, NameComesFromTheAttentionWhereThereIsNone) {
  add("run");
  folder_.write("run/config.toml",
                "seed = 3\n[task]\nname = \"t\"\n[task.model.attention]\nname = \"elliptical\"\n");
  EXPECT_EQ(read_runs({path()}, test::tasks_of_program()).runs.at(0).name, "elliptical");
  folder_.write("run/config.toml", "seed = 3\n[task]\nname = \"t\"\n");
  EXPECT_EQ(read_runs({path()}, test::tasks_of_program()).runs.at(0).name, "run");
}

TEST_F(RunDataTest, SnapshotAndLogAreFound) {
  add("run");
  folder_.write("run/snapshot.safetensors", "");
  folder_.write("run/log.jsonl", to_json_line({.metric = "loss", .value = 2, .count = 1}) + "\n");
  const RunData run = read_runs({path()}, test::tasks_of_program()).runs.at(0);
  EXPECT_EQ(run.snapshot, path() / "run/snapshot.safetensors");
  EXPECT_EQ(run.log.size(), 1);
}

TEST_F(RunDataTest, OneBadFolderDoesNotHideTheOthers) {
  add("good");
  add("no-toml");
  folder_.write("no-toml/config.toml", "seed = = 1\n");
  add("other");
  folder_.write("other/config.toml", "[server]\nport = 80\n");
  add("text-seed");
  folder_.write("text-seed/config.toml", "seed = \"x\"\n[task]\nname = \"t\"\n");
  const RunCollection found = read_runs({path()}, test::tasks_of_program());
  EXPECT_EQ(found.runs.size(), 1);
  const auto file = [&](const char* name) { return (path() / name / "config.toml").string(); };
  ASSERT_EQ(found.problems.size(), 3);
  EXPECT_TRUE(has_line(found.problems, {file("no-toml") + ":1: ", "(left out; "}));
  EXPECT_TRUE(has_line(found.problems,
                       {file("other") + ": must have seed and task.name, has not (left out; "}));
  EXPECT_TRUE(has_line(found.problems, {file("text-seed") + ": must have seed"}));
}

TEST_F(RunDataTest, MissingRecords) {
  const fs::path run = add("run");
  fs::remove(run / "records.jsonl");
  const RunCollection found = read_runs({path()}, test::tasks_of_program());
  EXPECT_EQ(found.runs.at(0).records.size(), 0);
  EXPECT_EQ(found.problems, Lines({(run / "records.jsonl").string() +
                                   ": is missing, nothing was measured yet (elliptical resume " +
                                   run.string() + ")"}));
}

TEST_F(RunDataTest, DamagedLinesAreNamedAndTheOthersUsed) {
  const fs::path run = add("run");
  const std::string good = to_json_line({.metric = "m", .value = 2, .count = 1}) + "\n";
  folder_.write("run/records.jsonl", good + "{\"metric\"\n" + good + "what\n" + good);
  const RunCollection found = read_runs({path()}, test::tasks_of_program());
  EXPECT_EQ(found.runs.at(0).records.size(), 3);
  ASSERT_EQ(found.problems.size(), 1);
  EXPECT_TRUE(
      has_line(found.problems, {(run / "records.jsonl").string() + ":2: record: no JSON",
                                "(2 damaged lines left out, the others are used; measure again: "
                                "elliptical eval " +
                                    run.string() + ")"}));
}

TEST_F(RunDataTest, FoldersWithoutRuns) {
  fs::create_directories(path() / "empty");
  const RunCollection found =
      read_runs({path() / "empty", path() / "absent"}, test::tasks_of_program());
  EXPECT_TRUE(found.runs.empty());
  ASSERT_EQ(found.problems.size(), 2);
  EXPECT_TRUE(has_line(found.problems, {(path() / "empty").string() +
                                        ": must be a folder with runs, has none (train one: "}));
  EXPECT_TRUE(has_line(found.problems, {(path() / "absent").string() +
                                        ": must be a folder with runs, there is no such folder"}));
  EXPECT_EQ(found.folders_without_runs, found.problems);
  // What is wrong with a run is not that there is none.
  fs::create_directories(path() / "broken");
  folder_.write("broken/config.toml", "seed = = 1\n");
  const RunCollection broken = read_runs({path() / "broken"}, test::tasks_of_program());
  EXPECT_EQ(broken.problems.size(), 1U);
  EXPECT_TRUE(broken.folders_without_runs.empty());
}

// A process may die, or a reader come, between any two bytes.
TEST_F(RunDataTest, R2RecordsCutAtEveryByteGiveAllCompleteOnes) {
  add("run", {.swapped = 4.5, .blocks = {0.1, -0.1}});
  const std::string whole = folder_.read("run/records.jsonl");
  const std::vector<Record> all = read_runs({path()}, test::tasks_of_program()).runs.at(0).records;
  ASSERT_EQ(all.size(), 7);
  for (size_t length = 0; length <= whole.size(); ++length) {
    const std::string cut = whole.substr(0, length);
    folder_.write("run/records.jsonl", cut);
    const RunCollection found = read_runs({path()}, test::tasks_of_program());
    ASSERT_EQ(found.problems, Lines()) << length;
    const auto num_lines = static_cast<size_t>(std::count(cut.begin(), cut.end(), '\n'));
    const std::vector<Record>& records = found.runs.at(0).records;
    ASSERT_EQ(records.size(), num_lines) << length;
    for (size_t i = 0; i < num_lines; ++i) {
      ASSERT_EQ(to_json_line(records[i]), to_json_line(all[i])) << length;
    }
  }
}

}  // namespace
}  // namespace elliptical::report
