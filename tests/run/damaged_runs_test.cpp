// SPDX-License-Identifier: MIT
//
// S6 where torch is needed: fuzzers are built without it. Run folders that the target `run_folder`
// damages are read by the program's own reader, which must take the same checkpoint as the one that
// is fuzzed; recipes are read into the program's own options.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <fstream>

#include "elliptical/base/config.h"
#include "elliptical/base/errors.h"
#include "elliptical/run/run_options.h"
#include "elliptical/store/checkpoint.h"
#include "elliptical/tasks/task.h"
#include "tests/fuzz/corpus.h"
#include "tests/fuzz/run_folder.h"
#include "tests/support/temporary_folder.h"

namespace elliptical::run {
namespace {

namespace fs = std::filesystem;

TEST(DamagedRuns, S6C6TheProgramTakesTheCheckpointThatTheFuzzedReaderTakes) {
  const test::TemporaryFolder folder;
  const fs::path run = folder.path() / "run", checkpoints = run / "checkpoints";
  const std::vector<std::string> corpus = test::read_corpus("run_folder");
  RandomStream random(RandomKey(3).derive("damaged runs"));
  std::map<std::optional<int64_t>, int> taken;
  for (int i = 0; i < 600; ++i) {
    test::make_damaged_run(test::mutate(corpus, random), run);
    const auto expected = newest_usable(checkpoints, test::read_checkpoint_files, {});
    std::vector<std::string> notices;
    const auto found =
        store::find_checkpoint(checkpoints, store::CheckpointPart::kAll,
                               [&](const std::string& line) { notices.push_back(line); });
    const auto step = found ? std::optional(found->state.step) : std::nullopt;
    // Types that files have and torch has not are refused by the program alone.
    const bool has_foreign_type =
        std::any_of(notices.begin(), notices.end(), [](const std::string& line) {
          return line.find("a type that torch has not") != std::string::npos;
        });
    if (!has_foreign_type) {
      EXPECT_EQ(step, expected) << (notices.empty() ? "" : notices[0]);
    }
    for (const std::string& line : notices) {
      EXPECT_NE(line.find((checkpoints / "step-").string()), std::string::npos) << line;
    }
    if (found) {
      EXPECT_TRUE(found->model.contains("proj.weight") || found->model.size() != 1);
    }
    ++taken[step];
  }
  // All that can become of a run has become of some.
  EXPECT_GT(taken[4], 20);
  EXPECT_GT(taken[2], 20);
  EXPECT_GT(taken[std::nullopt], 20);
}

/// Reads, or says what is wrong; what it reads can be written and read again.
bool reads(const std::string& text, const fs::path& name) {
  RunOptions options;
  try {
    read_recipe_text(text, name, fields_of(options));
  } catch (const ConfigError& error) {
    EXPECT_STRNE(error.what(), "");
    return false;
  }
  const std::string effective = to_toml(fields_of(options));
  RunOptions again;
  EXPECT_NO_THROW(read_recipe_text(effective, "effective", fields_of(again))) << effective;
  EXPECT_EQ(to_toml(fields_of(again)), effective);
  return true;
}

TEST(DamagedRecipes, S6S5AreReadIntoTheProgramsOptionsOrRefused) {
  const test::TemporaryFolder folder;
  std::vector<std::string> corpus = test::read_corpus("recipe");
  for (const OptionsEntry& task : tasks::task_choices()) {
    RunOptions options;
    apply_overrides({"task.name=" + std::string(task.name)}, fields_of(options));
    corpus.push_back(to_toml(fields_of(options)));
    EXPECT_TRUE(reads(corpus.back(), folder.path() / "recipe.toml"));
  }
  for (const auto& entry :
       fs::recursive_directory_iterator(fs::path(ELLIPTICAL_SOURCE_DIR) / "recipes")) {
    if (entry.path().extension() != ".toml") continue;
    const std::string text = test::read_text(entry.path());
    if (reads(text, folder.path() / "recipe.toml"))
      corpus.push_back(text);  // its base is not there
  }
  RandomStream random(RandomKey(4).derive("damaged recipes"));
  int num_read = 0, num_refused = 0;
  for (int i = 0; i < 3000; ++i) {
    ++(reads(test::mutate(corpus, random), folder.path() / "recipe.toml") ? num_read : num_refused);
  }
  EXPECT_GT(num_read, 100);
  EXPECT_GT(num_refused, 100);
}

}  // namespace
}  // namespace elliptical::run
