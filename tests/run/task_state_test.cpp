// SPDX-License-Identifier: MIT
//
// What a task hands from step to step is part of its checkpoints, and what its loss is made of
// reaches the log. Fault IDs: C1, C4, N1.
#include <torch/torch.h>

#include "elliptical/base/errors.h"
#include "elliptical/base/records.h"
#include "tests/run/run_fixture.h"

namespace elliptical::run::testing {
namespace {

using TaskStateTest = RunTest;

RunOptions options_with_state(int64_t steps) {
  RunOptions options = toy_run_options(steps);
  options.task.get<ToyOptions>().carries_state = true;
  return options;
}

TEST_F(TaskStateTest, IsPartOfWhatIsTrained) {
  start("with", options_with_state(6));
  start("without", toy_run_options(6));
  const auto with =
      store::newest_checkpoint(paths("with").checkpoints(), store::CheckpointPart::kAll, {});
  const auto without =
      store::newest_checkpoint(paths("without").checkpoints(), store::CheckpointPart::kAll, {});
  EXPECT_FALSE(with->model.at("first.weight").equal(without->model.at("first.weight")));
  EXPECT_GT(with->task.at("memory").abs().sum().item<double>(), 0);
  EXPECT_TRUE(without->task.empty());
  EXPECT_FALSE(fs::exists(without->folder / "task.safetensors")) << "of a task that carries none";
}

TEST_F(TaskStateTest, DeathAnywhereAndResumeGivesTheSameBits) {
  const RunOptions options = options_with_state(10);
  start("whole", options);
  // "loss" is in the middle of a step, when the state of the next one has taken its place.
  for (const std::string phase : {"train", "loss", "eval"}) {
    for (int64_t index = 0; index < (phase == "eval" ? 3 : 10); ++index) {
      const std::string name = phase + std::to_string(index);
      toy_hook = [&](const std::string& where, int64_t i) {
        if (where == phase && i == index) throw DataError("x.jpg: truncated");
      };
      EXPECT_THROW(start(name, options), DataError);
      toy_hook = nullptr;
      resume(name, options);
      EXPECT_EQ(state_bytes(name), state_bytes("whole")) << name;
    }
  }
}

TEST_F(TaskStateTest, AForkTakesItARestartDoesNot) {
  const RunOptions options = options_with_state(6);
  start("a", options);
  const auto source =
      store::newest_checkpoint(paths("a").checkpoints(), store::CheckpointPart::kAll, {});
  for (const bool restart : {false, true}) {
    const std::string name = restart ? "restarted" : "continued";
    const std::unique_ptr<tasks::Task> task = make_toy_task(options);
    const RunLock lock = create_run_folder(paths(name));
    save_fork({.paths = paths(name), .options = &options, .task = task.get(), .program = "test"},
              *source, restart);
    const auto first =
        store::newest_checkpoint(paths(name).checkpoints(), store::CheckpointPart::kAll, {});
    const at::Tensor expected = restart ? at::zeros({5}) : source->task.at("memory");
    EXPECT_TRUE(first->task.at("memory").equal(expected)) << name;
  }
}

TEST_F(TaskStateTest, N1OneThatIsNotFiniteIsNeverSaved) {
  RunOptions options = options_with_state(9);
  options.train.checkpoint_interval = 1;
  options.train.checkpoints_kept = 1;
  options.task.get<ToyOptions>().bad_memory_step = 4;
  EXPECT_EQ(
      message_of<RunError>([&] { start("a", options); }),
      paths("a").folder.string() +
          ": step 5: memory must be finite after this step, is not (nothing was saved, older "
          "checkpoints are kept; try a lower optimizer.learning_rate or optimizer.clip_norm)");
  EXPECT_EQ(checkpoint_steps(paths("a").checkpoints()).back(), 4);
}

TEST_F(TaskStateTest, PartsOfTheLossReachTheLog) {
  start("with", options_with_state(3));
  std::map<std::string, std::vector<double>> logged;
  for (const Record& record : read_records(paths("with").log())) {
    logged[record.metric].push_back(record.value);
  }
  ASSERT_EQ(logged["loss"].size(), 3);
  ASSERT_EQ(logged["loss_memory"].size(), 3);
  ASSERT_EQ(logged["loss_main"].size(), 3);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_GT(logged["loss_memory"][i], 0);
    EXPECT_NEAR(logged["loss"][i], logged["loss_main"][i] + logged["loss_memory"][i],
                1e-6 * logged["loss"][i]);
  }
  start("without", toy_run_options(3));
  for (const Record& record : read_records(paths("without").log())) {
    EXPECT_EQ(record.metric, "loss") << "one term has no parts";
  }
}

}  // namespace
}  // namespace elliptical::run::testing
