// SPDX-License-Identifier: MIT
//
// What commands do with runs, called as functions: start, resume, fork, load, evaluate, attack, of
// the smallest language model.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <limits>

#include "elliptical/base/errors.h"
#include "elliptical/run/measure_run.h"
#include "elliptical/run/start_run.h"
#include "tests/run/small_runs.h"
#include "tests/support/error_message.h"
#include "tests/support/lines.h"

namespace elliptical::run::testing {
namespace {

using test::any_contains;
using test::error_message;

class RunOperationsTest : public SmallRunTest {
 protected:
  static store::Checkpoint newest(const RunPaths& run) {
    return *store::newest_checkpoint(run.checkpoints(), store::CheckpointPart::kAll, {});
  }
  static bool are_equal(const std::map<std::string, at::Tensor>& a,
                        const std::map<std::string, at::Tensor>& b) {
    return a.size() == b.size() && std::all_of(a.begin(), a.end(), [&](const auto& entry) {
             return entry.second.equal(b.at(entry.first));
           });
  }
};

TEST_F(RunOperationsTest, StartTrainsToTheEndAndOnlyOnce) {
  const RunPaths run = start("a");
  EXPECT_EQ(newest(run).state.step, 4);
  EXPECT_EQ(newest(run).state.program, "test");
  EXPECT_EQ(data_.size(), 1U);  // described once, not before the validation too
  EXPECT_EQ(error_message<RunError>([&] { start("a"); }),
            run.folder.string() +
                ": must be new, holds a run already (continue it: elliptical resume " +
                run.folder.string() + ")");
}

TEST_F(RunOperationsTest, ResumeEndsWithTheBitsOfARunThatWasNotStopped) {
  const store::Checkpoint whole = newest(start("whole"));
  const RunPaths stopped = start("stopped");
  fs::remove_all(stopped.checkpoints() / "step-4");  // as if it had been stopped after step 2
  resume_run({.paths = stopped, .program = "test", .hooks = hooks()});
  const store::Checkpoint resumed = newest(stopped);
  EXPECT_TRUE(are_equal(whole.model, resumed.model));
  EXPECT_TRUE(are_equal(whole.optimizer, resumed.optimizer));
  EXPECT_EQ(read_records(stopped.records()).size(), read_records(paths("whole").records()).size());
  EXPECT_TRUE(any_contains(notices_, "continues after step 2"));
}

TEST_F(RunOperationsTest, ForkGoesOnWithMomentsOrStartsOverWithoutThem) {
  const RunPaths run = start("a");
  const auto forked = [&](const std::string& name, ForkRequest request) {
    request.source = run;
    return newest(fork(name, request));
  };
  EXPECT_EQ(error_message<UsageError>([&] { forked("b", {.assignments = {"train.steps=3"}}); }),
            "fork: train.steps must be at least 4, the step that it starts from, is 3 (--set "
            "train.steps=N, an earlier checkpoint with --step, there are 2, 4, or --restart)");
  EXPECT_FALSE(fs::exists(paths("b").folder));
  // The same options from the middle are the same run.
  EXPECT_TRUE(are_equal(forked("b", {.step = 2}).model, newest(run).model));
  const store::Checkpoint over =
      forked("c", {.assignments = {"train.steps=0"}, .step = 2, .restart = true});
  EXPECT_EQ(over.state.step, 0);
  EXPECT_EQ(over.state.origin, (run.checkpoints() / "step-2").string() + " step 2");
  const store::Checkpoint source =
      store::read_checkpoint(run.checkpoints() / "step-2", store::CheckpointPart::kModel);
  EXPECT_TRUE(are_equal(over.model, source.model));
  for (const auto& [name, moment] : over.optimizer) EXPECT_EQ(moment.abs().sum().item<double>(), 0);
}

TEST_F(RunOperationsTest, LoadChoosesTheCheckpointThatIsAskedFor) {
  const RunPaths run = start("a");
  EXPECT_EQ(load(run).step, 4);
  LoadedRun loaded = load(run, 2);
  EXPECT_EQ(loaded.step, 2);
  EXPECT_FALSE(loaded.task->model().is_training());
  const auto saved =
      store::read_checkpoint(run.checkpoints() / "step-2", store::CheckpointPart::kModel);
  for (const auto& [name, tensor] : store::named_tensors(loaded.task->model())) {
    EXPECT_TRUE(tensor.equal(saved.model.at(name))) << name;
  }
  EXPECT_EQ(error_message<RunError>([&] { load(run, 3); }),
            run.folder.string() + ": --step must be one of its checkpoints, 2, 4, got 3");
  EXPECT_EQ(error_message<RunError>([&] { load(run, -1, Weights::kAverage); }),
            run.folder.string() +
                ": train.ema_decay must be above 0 for an average of its weights, is 0 (leave out "
                "--weights ema, or train with --set train.ema_decay=0.9999)");
  fs::remove_all(run.checkpoints());
  fs::create_directory(run.checkpoints());
  EXPECT_TRUE(error_message<RunError>([&] {
                load(run);
              }).starts_with(run.folder.string() + ": must have a checkpoint, has none yet"));
}

TEST_F(RunOperationsTest, LoadRefusesWeightsThatAreNotFinite) {
  const RunPaths run = start("a");
  store::Checkpoint broken = newest(run);
  broken.state.step = 5;
  store::NamedTensors model(broken.model.begin(), broken.model.end());
  model.front().second.fill_(std::numeric_limits<double>::quiet_NaN());
  store::save_checkpoint(run.checkpoints(), broken.state,
                         {.model = model, .vocabulary = broken.vocabulary}, {});
  const std::string file = (run.checkpoints() / "step-5" / "model.safetensors").string();
  EXPECT_EQ(error_message<RunError>([&] { load(run); }),
            file + ": weights must be finite, " + model.front().first +
                " is not (choose an older checkpoint with --step, or train it again with a lower "
                "optimizer.learning_rate)");
  EXPECT_EQ(load(run, 4).step, 4);
}

TEST_F(RunOperationsTest, WhatIsMeasuredIsToldFirstAndRecordedWhateverComesOfThat) {
  const RunPaths run = start("a");
  LoadedRun loaded = load(run);
  const size_t num_before = read_records(run.records()).size();
  size_t num_told = 0, num_recorded = 0;
  const auto evaluate = [&] {
    evaluate_run({.run = loaded,
                  .assignments = {"split=test"},
                  .hooks = hooks(),
                  .told = [&](const std::vector<Record>& records) {
                    num_told = records.size();
                    num_recorded = read_records(run.records()).size() - num_before;
                    throw std::runtime_error("stdout is closed");
                  }});
  };
  EXPECT_EQ(error_message<std::runtime_error>(evaluate), "stdout is closed");
  EXPECT_GT(num_told, 0U);
  EXPECT_EQ(num_recorded, 0U);
  const std::vector<Record> records = read_records(run.records());
  ASSERT_EQ(records.size(), num_before + num_told);
  EXPECT_EQ(records.back().labels.at("source"), LabelValue(std::string("eval")));
  EXPECT_EQ(records.back().labels.at("step"), LabelValue(int64_t{4}));
}

TEST_F(RunOperationsTest, OtherWeightsThanTheRunIsMeasuredByAreNamed) {
  const RunPaths run = start("a", {"train.ema_decay=0.5"});
  const auto labels = [&](std::optional<Weights> weights) {
    LoadedRun loaded = load(run, -1, weights);
    return evaluate_run({.run = loaded, .hooks = hooks()}).front().labels;
  };
  EXPECT_FALSE(labels(std::nullopt).contains("weights"));
  EXPECT_EQ(labels(Weights::kAverage).at("weights"), LabelValue(std::string("ema")));
}

TEST_F(RunOperationsTest, TextCanNotBeAttacked) {
  LoadedRun loaded = load(start("a"));
  const AttackPlan plan = make_attack_plan({.attacks = "fgsm", .eps = "1/255"});
  const std::string message = error_message<UsageError>(
      [&] { attack_run({.run = loaded, .plan = plan, .program = "test", .hooks = hooks()}); });
  EXPECT_NE(message.find("pictures"), std::string::npos) << message;
}

TEST(RequireFiniteRecords, WholeMeasurementsCountAndPartsDoNot) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Record whole{.metric = "perplexity", .value = nan, .count = 3, .labels = {}};
  Record block = whole, nothing = whole;
  block.labels["block"] = int64_t{1};
  nothing.count = 0;
  require_finite_records({block, nothing}, "run");
  const std::string message =
      error_message<RunError>([&] { require_finite_records({block, whole, whole}, "run"); });
  EXPECT_TRUE(message.starts_with(
      "run: what is measured must be finite, perplexity is nan (recorded as it is;"))
      << message;
}

}  // namespace
}  // namespace elliptical::run::testing
