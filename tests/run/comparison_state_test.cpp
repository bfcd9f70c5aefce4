// SPDX-License-Identifier: MIT
//
// A comparison that was stopped goes on with what its folders lack.
#include "elliptical/run/comparison_state.h"

#include "elliptical/run/measure_run.h"
#include "elliptical/run/train.h"
#include "tests/run/small_runs.h"

namespace elliptical::run::testing {
namespace {

const ComparisonWork kWork{
    .method = "block",
    .damages = {
        {.perturbation = "word_swap", .strength = 0.025, .assignments = {"swap_rate=0.025"}},
        {.perturbation = "word_swap", .strength = 0.1, .assignments = {"swap_rate=0.1"}}}};

class ComparisonStateTest : public SmallRunTest {
 protected:
  PlannedRun planned(const std::string& name) const {
    PlannedRun run{.name = name, .folder = root_ / name, .options = RunOptions()};
    if (fs::exists(RunPaths{run.folder}.config())) read_config({run.folder}, run.options);
    return run;
  }
  void measure(const RunPaths& run, std::vector<std::string> assignments) {
    assignments.insert(assignments.end(), {"split=test", "blocks=5"});
    LoadedRun loaded = load(run);
    evaluate_run({.run = loaded, .assignments = assignments, .hooks = hooks()});
  }
};

TEST_F(ComparisonStateTest, OfARunThatIsNotThereIsNothing) {
  const RunState state = state_of(planned("none"), kWork);
  EXPECT_FALSE(state.is_trained);
  EXPECT_EQ(state.part_trained, 0);
  EXPECT_EQ(state.num_evaluations(), 3U);
  EXPECT_FALSE(state.is_whole());
}

TEST_F(ComparisonStateTest, KnowsWhatIsStillToBeMeasured) {
  const RunPaths run = start("a", {"task.model.attention.name=elliptical"});
  RunState state = state_of(planned("a"), kWork);
  EXPECT_TRUE(state.is_trained);
  EXPECT_EQ(state.part_trained, 1);
  EXPECT_TRUE(state.metric_mean);
  EXPECT_EQ(state.num_evaluations(), 3U);
  measure(run, {});
  state = state_of(planned("a"), kWork);
  EXPECT_FALSE(state.lacks_clean);
  EXPECT_EQ(state.damages.size(), 2U);
  measure(run, kWork.damages[1].assignments);
  state = state_of(planned("a"), kWork);
  ASSERT_EQ(state.damages.size(), 1U);
  EXPECT_EQ(state.damages[0].strength, 0.025);
  measure(run, kWork.damages[0].assignments);
  EXPECT_TRUE(state_of(planned("a"), kWork).is_whole());
}

TEST_F(ComparisonStateTest, OfAStoppedTrainingIsItsPart) {
  start("a");
  PlannedRun longer = planned("a");
  longer.options.train.steps = 8;
  const RunState state = state_of(longer, kWork);
  EXPECT_FALSE(state.is_trained);
  EXPECT_EQ(state.part_trained, 0.5);
}

}  // namespace
}  // namespace elliptical::run::testing
