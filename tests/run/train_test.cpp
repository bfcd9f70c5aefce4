// SPDX-License-Identifier: MIT
//
// The train loop on the toy task: ends with the same bits however often it was stopped, refuses
// what it must refuse. Fault IDs: C3, C9, C10, C11, D4, D5, N1, M3, R2.
#include "elliptical/run/train.h"

#include <torch/torch.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>

#include "elliptical/base/config.h"
#include "elliptical/base/errors.h"
#include "elliptical/base/files.h"
#include "elliptical/base/records.h"
#include "elliptical/run/data_check.h"
#include "tests/run/run_fixture.h"

namespace elliptical::run::testing {
namespace {

using TrainTest = RunTest;

/// What a dead process leaves behind is what an exception leaves behind: nothing in memory.
struct Death {};

std::vector<Record> without_rates(std::vector<Record> records) {
  for (Record& record : records) record.labels.erase("rows_per_second");
  return records;
}

/// Log and records of two runs hold the same lines, but for the name of the run and the speed.
void expect_same_records(const RunPaths& a, const RunPaths& b) {
  for (const auto& [of_a, of_b] : {std::pair{a.log(), b.log()}, {a.records(), b.records()}}) {
    std::vector<Record> left = without_rates(read_records(of_a)),
                        right = without_rates(read_records(of_b));
    ASSERT_EQ(left.size(), right.size());
    for (size_t i = 0; i < left.size(); ++i) {
      for (const char* label : {"name", "run"}) {
        left[i].labels.erase(label);
        right[i].labels.erase(label);
      }
      EXPECT_EQ(to_json_line(left[i]), to_json_line(right[i]));
    }
  }
}

TEST_F(TrainTest, LearnsAndRecords) {
  RunOptions options = toy_run_options(300);
  options.train.eval_interval = options.train.checkpoint_interval = 100;
  start("a", options);
  const std::vector<Record> records = read_records(paths("a").records());
  ASSERT_EQ(records.size(), 6);
  EXPECT_EQ(records[0].metric, "error");
  EXPECT_LT(records[4].value, 1.0) << "of a variance of 5";
  EXPECT_EQ(records[4].count, 12);
  const Labels expected = {{"name", std::string("a")},       {"noise", 0.0},
                           {"run", std::string("a")},        {"seed", int64_t{3}},
                           {"source", std::string("train")}, {"split", std::string("valid")},
                           {"step", int64_t{300}},           {"task", std::string("toy")}};
  EXPECT_EQ(records[4].labels, expected);
  EXPECT_EQ(read_records(paths("a").log()).size(), 300);
  EXPECT_EQ(checkpoint_steps(paths("a").checkpoints()), (std::vector<int64_t>{200, 300}));
}

TEST_F(TrainTest, C1C10DeathAnywhereAndResumeGivesTheSameBits) {
  const RunOptions options = toy_run_options(10);
  start("whole", options);
  for (const std::string phase : {"train", "eval"}) {
    for (int64_t index = 0; index < (phase == "train" ? 10 : 3); ++index) {
      const std::string name = phase + std::to_string(index);
      toy_hook = [&](const std::string& where, int64_t i) {
        if (where == phase && i == index) throw Death();
      };
      EXPECT_THROW(start(name, options), Death);
      toy_hook = nullptr;
      resume(name, options);
      EXPECT_EQ(state_bytes(name), state_bytes("whole")) << name;
      expect_same_records(paths(name), paths("whole"));
    }
  }
}

TEST_F(TrainTest, WhateverFailsTheStepsBeforeItAreSaved) {
  RunOptions options = toy_run_options(10);
  options.train.checkpoint_interval = 0;
  start("whole", options);
  for (const auto& [phase, index, step] :
       {std::tuple("train", 7, 7), std::tuple("loss", 6, 6), std::tuple("eval", 2, 4)}) {
    const std::string name = phase;
    toy_hook = [&, phase = phase, index = index](const std::string& where, int64_t i) {
      if (where == phase && i == index) throw DataError("x.jpg: truncated");
    };
    notices_.clear();
    EXPECT_EQ(message_of<DataError>([&] { start(name, options); }), "x.jpg: truncated");
    toy_hook = nullptr;
    EXPECT_EQ(checkpoint_steps(paths(name).checkpoints()), std::vector<int64_t>{step}) << name;
    const std::string run = paths(name).folder.string();
    EXPECT_TRUE(any_contains(notices_, run + ": step " + std::to_string(step) +
                                           " is saved, what follows it failed (continue: "
                                           "elliptical resume " +
                                           run + ")"));
    resume(name, options);
    EXPECT_EQ(state_bytes(name), state_bytes("whole")) << name;
    expect_same_records(paths(name), paths("whole"));
  }
}

TEST_F(TrainTest, WhatIsDueIsSavedBeforeItIsMeasured) {
  RunOptions options = toy_run_options(8);
  options.train.checkpoint_interval = 4;
  int64_t num_evaluations = 0;
  toy_hook = [&](const std::string& where, int64_t index) {
    if (where != "eval" || index != 0) return;
    const int64_t step = 4 * ++num_evaluations;
    EXPECT_EQ(checkpoint_steps(paths("a").checkpoints()).back(), step);
    const auto saved = store::read_checkpoint(
        paths("a").checkpoints() / ("step-" + std::to_string(step)), store::CheckpointPart::kModel);
    EXPECT_FALSE(saved.state.evaluated);
  };
  start("a", options);
  EXPECT_EQ(num_evaluations, 2);
  // Then it says that it is measured, and a finished run is not measured again.
  const auto newest =
      store::newest_checkpoint(paths("a").checkpoints(), store::CheckpointPart::kAll, {});
  EXPECT_TRUE(newest->state.evaluated);
  resume("a", options);
  EXPECT_EQ(num_evaluations, 2);
}

TEST_F(TrainTest, R2DamagedLinesDoNotBlockAResume) {
  const RunOptions options = toy_run_options(10);
  start("whole", options);
  toy_hook = [](const std::string& where, int64_t step) {
    if (where == "train" && step == 8) throw Death();
  };
  EXPECT_THROW(start("a", options), Death);
  toy_hook = nullptr;
  for (const fs::path& path : {paths("a").records(), paths("a").log()}) {
    const std::string text = read_file(path);
    const size_t end = text.find('\n') + 1;
    write_file_atomically(path, text.substr(0, end) + "#damaged\n" + text.substr(end));
  }
  notices_.clear();
  resume("a", options);
  EXPECT_TRUE(any_contains(notices_, "records.jsonl:2: record: no JSON"));
  EXPECT_TRUE(any_contains(notices_, "log.jsonl:2: record: no JSON"));
  expect_same_records(paths("a"), paths("whole"));
}

TEST_F(TrainTest, DeathAndResumeKeepTheAverageAndTheStatistics) {
  RunOptions options = toy_run_options(10);
  options.train.ema_decay = 0.8;
  options.optimizer.weight_decay = 0.05;
  options.optimizer.decay_rule = DecayRule::kMatrices;
  options.schedule.interval = 4;
  start("whole", options);
  const auto whole =
      store::newest_checkpoint(paths("whole").checkpoints(), store::CheckpointPart::kAll, {});
  EXPECT_EQ(whole->model.at("num_batches").item<int64_t>(), 10);
  EXPECT_EQ(whole->average.at("num_batches").item<int64_t>(), 10);
  EXPECT_FALSE(whole->average.at("running_mean").equal(whole->model.at("running_mean")));
  for (const int64_t index : {1, 4, 9}) {
    const std::string name = "killed" + std::to_string(index);
    toy_hook = [&](const std::string& where, int64_t i) {
      if (where == "train" && i == index) throw Death();
    };
    EXPECT_THROW(start(name, options), Death);
    toy_hook = nullptr;
    resume(name, options);
    EXPECT_EQ(state_bytes(name), state_bytes("whole")) << name;
  }
}

TEST_F(TrainTest, AverageFollowsTheWeightsOfEachStep) {
  constexpr double kDecay = 0.75;
  RunOptions options = toy_run_options(4);
  options.train.ema_decay = kDecay;
  options.train.checkpoint_interval = 1;
  options.train.checkpoints_kept = 10;
  start("a", options);
  at::Tensor expected =
      make_toy_task(options)->model().named_parameters()["first.weight"].detach().to(at::kDouble);
  for (int64_t step = 1; step <= 4; ++step) {
    const store::Checkpoint checkpoint = store::read_checkpoint(
        paths("a").checkpoints() / ("step-" + std::to_string(step)), store::CheckpointPart::kAll);
    expected = kDecay * expected + (1 - kDecay) * checkpoint.model.at("first.weight");
    // A few roundings of float each step, of numbers below 1.
    EXPECT_TRUE(checkpoint.average.at("first.weight").to(at::kDouble).allclose(expected, 0, 1e-6));
  }
}

TEST_F(TrainTest, MeasuresTheAverageWhereAskedAndTrainsAllTheSame) {
  RunOptions options = toy_run_options(6);
  options.train.ema_decay = 0.9;
  options.train.eval_interval = 2;
  start("trained", options);
  options.train.eval_weights = Weights::kAverage;
  start("ema", options);
  const auto newest = [&](const char* name) {
    return *store::newest_checkpoint(paths(name).checkpoints(), store::CheckpointPart::kAll, {});
  };
  const store::Checkpoint trained = newest("trained"), average = newest("ema");
  for (const auto& [name, tensor] : trained.model) {
    EXPECT_TRUE(tensor.equal(average.model.at(name))) << name;
    EXPECT_TRUE(trained.average.at(name).equal(average.average.at(name))) << name;
  }

  const std::unique_ptr<tasks::Task> task = make_toy_task(options);
  const auto error_of = [&](const auto& weights) {
    store::copy_tensors(store::named_tensors(task->model()), weights, "weights");
    return evaluate(*task, *task->make_eval_options(), {}, {})->front().value;
  };
  const auto last_record = [&](const char* name) {
    Record last;
    for (const Record& record : read_records(paths(name).records())) {
      if (record.metric == "error") last = record;
    }
    return last;
  };
  EXPECT_EQ(last_record("trained").value, error_of(trained.model));
  EXPECT_EQ(last_record("ema").value, error_of(trained.average));
  EXPECT_NE(last_record("ema").value, last_record("trained").value);
  EXPECT_EQ(last_record("ema").labels.at("eval_weights"), LabelValue(std::string("ema")));
  EXPECT_FALSE(last_record("trained").labels.contains("eval_weights"));
}

TEST_F(TrainTest, ADeathInTheMeasurementOfAnAverageLosesNoWeights) {
  RunOptions options = toy_run_options(6);
  options.train.ema_decay = 0.9;
  options.train.eval_interval = 2;
  options.train.checkpoint_interval = 1;
  options.train.eval_weights = Weights::kAverage;
  start("whole", options);
  toy_hook = [&](const std::string& where, int64_t i) {
    if (where == "eval" && i == 1) raise(SIGTERM);
  };
  EXPECT_THROW(start("stopped", options), Interrupted);
  toy_hook = nullptr;
  resume("stopped", options);
  EXPECT_EQ(state_bytes("stopped"), state_bytes("whole"));
}

TEST_F(TrainTest, ForkTakesTheAverageOrStartsOne) {
  RunOptions options = toy_run_options(6);
  options.train.ema_decay = 0.9;
  start("with", options);
  start("without", toy_run_options(6));
  for (const std::string source_name : {"with", "without"}) {
    for (const bool restart : {false, true}) {
      const auto source = store::newest_checkpoint(paths(source_name).checkpoints(),
                                                   store::CheckpointPart::kAll, {});
      const std::string name = source_name + (restart ? "-restarted" : "-continued");
      const std::unique_ptr<tasks::Task> task = make_toy_task(options);
      const RunLock lock = create_run_folder(paths(name));
      save_fork({.paths = paths(name), .options = &options, .task = task.get(), .program = "test"},
                *source, restart);
      const auto first =
          store::newest_checkpoint(paths(name).checkpoints(), store::CheckpointPart::kAll, {});
      const bool is_taken = source_name == "with" && !restart;
      const auto& expected = is_taken ? source->average : source->model;
      EXPECT_TRUE(first->average.at("first.weight").equal(expected.at("first.weight"))) << name;
    }
  }
}

TEST_F(TrainTest, ManyDeathsInOneRun) {
  RunOptions options = toy_run_options(20);
  options.train.checkpoint_interval = 2;
  start("whole", options);
  int64_t deaths = 0;
  toy_hook = [&](const std::string& where, int64_t step) {
    if (where == "train" && step % 3 == 2 && step / 3 >= deaths) throw(++deaths, Death());
  };
  EXPECT_THROW(start("killed", options), Death);
  for (bool done = false; !done;) {
    try {
      resume("killed", options);
      done = true;
    } catch (const Death&) {
    }
  }
  EXPECT_GT(deaths, 4);
  EXPECT_EQ(state_bytes("killed"), state_bytes("whole"));
  expect_same_records(paths("killed"), paths("whole"));
}

TEST_F(TrainTest, C9SignalsFinishTheStepSaveAndStop) {
  const RunOptions options = toy_run_options(10);
  start("whole", options);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    for (const std::string phase : {"train", "eval"}) {
      const std::string name = phase + std::to_string(signal);
      toy_hook = [&](const std::string& where, int64_t index) {
        if (where == phase && index == 1) raise(signal);
      };
      try {
        start(name, options);
        FAIL() << "must be interrupted";
      } catch (const Interrupted& error) {
        EXPECT_EQ(error.signal, signal);
        EXPECT_NE(
            std::string(error.what())
                .find("saved (continue: elliptical resume " + paths(name).folder.string() + ")"),
            std::string::npos)
            << error.what();
      }
      // The step that ran is finished; the evaluation is given up, and comes again.
      EXPECT_EQ(checkpoint_steps(paths(name).checkpoints()).back(), phase == "train" ? 2 : 4);
      toy_hook = nullptr;
      resume(name, options);
      EXPECT_EQ(state_bytes(name), state_bytes("whole"));
      expect_same_records(paths(name), paths("whole"));
    }
  }
}

TEST_F(TrainTest, C9UserSignalSavesAndGoesOn) {
  RunOptions options = toy_run_options(9);
  options.train.checkpoints_kept = 10;
  toy_hook = [&](const std::string& where, int64_t index) {
    if (where == "train" && index == 4) raise(SIGUSR1);
  };
  start("a", options);
  EXPECT_EQ(checkpoint_steps(paths("a").checkpoints()), (std::vector<int64_t>{3, 5, 6, 9}));
  EXPECT_TRUE(any_contains(notices_, "step 5: saved, as SIGUSR1 asked"));
}

TEST_F(TrainTest, C9SecondInterruptLeavesAtOnce) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto interrupt_twice = [&] {
    toy_hook = [](const std::string&, int64_t) {
      raise(SIGINT);
      raise(SIGINT);
    };
    start("a", toy_run_options(10));
  };
  EXPECT_EXIT(interrupt_twice(), ::testing::ExitedWithCode(130), "");
}

TEST_F(TrainTest, AFinishedRunStaysAsItIs) {
  const RunOptions options = toy_run_options(6);
  start("a", options);
  const std::string before = state_bytes("a"), records = read_file(paths("a").records());
  resume("a", options);
  EXPECT_EQ(state_bytes("a"), before);
  EXPECT_EQ(read_file(paths("a").records()), records);
}

TEST_F(TrainTest, C6DamagedNewestCheckpointEndsWithTheSameBits) {
  const RunOptions options = toy_run_options(9);
  start("whole", options);
  start("damaged", options);
  fs::resize_file(paths("damaged").checkpoints() / "step-9" / "optimizer.safetensors", 100);
  resume("damaged", options);
  EXPECT_EQ(state_bytes("damaged"), state_bytes("whole"));
  expect_same_records(paths("damaged"), paths("whole"));
  EXPECT_TRUE(any_contains(notices_, "continues after step 6"));
}

TEST_F(TrainTest, C11ChangedConfigurationIsRefusedWithTheDifferences) {
  RunOptions options = toy_run_options(6);
  start("a", options);
  const std::string before = state_bytes("a");
  options.optimizer.learning_rate = 0.5;
  options.task.get<ToyOptions>().dropout = 0.5;
  const std::string message = message_of<RunError>([&] { resume("a", options); });
  EXPECT_NE(message.find("optimizer.learning_rate: 0.5, was 0.02"), std::string::npos) << message;
  EXPECT_NE(message.find("task.dropout: 0.5, was 0.25"), std::string::npos) << message;
  EXPECT_NE(message.find("elliptical fork"), std::string::npos) << message;
  EXPECT_EQ(state_bytes("a"), before);
}

TEST_F(TrainTest, D5ChangedDataAreRefused) {
  RunOptions options = toy_run_options(6);
  start("a", options);
  // The same configuration, but the generator says it is another one now.
  RunOptions changed = options;
  changed.task.get<ToyOptions>().data_version = 2;
  const std::unique_ptr<tasks::Task> task = make_toy_task(changed);
  const std::string message = message_of<RunError>([&] {
    train({.paths = paths("a"), .options = &options, .task = task.get(), .program = "test"});
  });
  EXPECT_NE(message.find("data generator: 2, was 1"), std::string::npos) << message;
}

TEST_F(TrainTest, ForkGoesOnFromTheWeightsOfAnotherRun) {
  RunOptions options = toy_run_options(6);
  start("a", options);
  const auto source =
      store::newest_checkpoint(paths("a").checkpoints(), store::CheckpointPart::kAll, {});
  options.train.steps = 12;
  for (const bool restart : {false, true}) {
    const std::string name = restart ? "restarted" : "continued";
    const std::unique_ptr<tasks::Task> task = make_toy_task(options);
    const TrainJob job{
        .paths = paths(name), .options = &options, .task = task.get(), .program = "test"};
    {
      const RunLock lock = create_run_folder(paths(name));
      save_fork(job, *source, restart);
      write_config(paths(name), config_text(options));
    }
    const auto first =
        store::newest_checkpoint(paths(name).checkpoints(), store::CheckpointPart::kAll, {});
    EXPECT_EQ(first->state.step, restart ? 0 : 6);
    EXPECT_NE(first->state.origin.find("step-6 step 6"), std::string::npos) << first->state.origin;
    EXPECT_TRUE(first->model.at("first.weight").equal(source->model.at("first.weight")));
    EXPECT_EQ(first->optimizer.at("exp_avg.first.weight").equal(at::zeros({8, 5})), restart);
    resume(name, options);
    EXPECT_EQ(checkpoint_steps(paths(name).checkpoints()).back(), 12);
  }
}

TEST_F(TrainTest, ForkOfAnotherShapeIsRefused) {
  RunOptions options = toy_run_options(3);
  start("a", options);
  const auto source =
      store::newest_checkpoint(paths("a").checkpoints(), store::CheckpointPart::kAll, {});
  options.task.get<ToyOptions>().width = 9;
  const std::unique_ptr<tasks::Task> task = make_toy_task(options);
  const TrainJob job{
      .paths = paths("b"), .options = &options, .task = task.get(), .program = "test"};
  EXPECT_NE(message_of<DataError>([&] {
              save_fork(job, *source, false);
            }).find("first.weight must be Float [9, 5], is Float [8, 5]"),
            std::string::npos);
}

TEST_F(TrainTest, N1NonFiniteLossStopsBeforeTheStep) {
  RunOptions options = toy_run_options(10);
  options.task.get<ToyOptions>().bad_loss_step = 7;
  const std::string message = message_of<RunError>([&] { start("a", options); });
  EXPECT_NE(message.find("step 8 (batch 7): loss must be finite, is "), std::string::npos)
      << message;
  EXPECT_NE(message.find("first in second ("), std::string::npos) << message;
  EXPECT_EQ(checkpoint_steps(paths("a").checkpoints()), (std::vector<int64_t>{3, 6}));
  EXPECT_EQ(read_records(paths("a").log()).size(), 7);
}

TEST_F(TrainTest, N1NonFiniteGradientStopsBeforeTheStep) {
  RunOptions options = toy_run_options(10);
  options.task.get<ToyOptions>().bad_gradient_step = 4;
  const std::string message = message_of<RunError>([&] { start("a", options); });
  EXPECT_NE(message.find("step 5 (batch 4): the norm of the gradient must be finite, is "),
            std::string::npos)
      << message;
  EXPECT_NE(message.find("the gradient of second.bias"), std::string::npos) << message;
  EXPECT_EQ(checkpoint_steps(paths("a").checkpoints()), std::vector<int64_t>{3});
}

TEST_F(TrainTest, N1NonFiniteWeightsAreNamed) {
  const RunOptions options = toy_run_options(3);
  const std::unique_ptr<tasks::Task> task = make_toy_task(options);
  {
    const at::NoGradGuard no_grad;
    task->model().named_parameters()["first.weight"].fill_(INFINITY);
  }
  {
    const RunLock lock = create_run_folder(paths("a"));
  }
  const std::string message = message_of<RunError>([&] {
    train({.paths = paths("a"), .options = &options, .task = task.get(), .program = "test"});
  });
  EXPECT_NE(message.find("first in the weights of first.weight"), std::string::npos) << message;
}

/// A run of six steps of which one checkpoint is kept, and a fork of it that goes on for a step.
class BrokenWeightsTest : public TrainTest {
 protected:
  RunOptions good_options() const {
    RunOptions options = toy_run_options(6);
    options.train.checkpoints_kept = 1;
    options.train.eval_interval = 0;
    options.schedule.warmup_steps = 0;
    return options;
  }
  void fork_and_train(const std::string& name, const RunOptions& options) {
    const std::unique_ptr<tasks::Task> task = make_toy_task(options);
    const TrainJob job{
        .paths = paths(name), .options = &options, .task = task.get(), .program = "test"};
    const RunLock lock = create_run_folder(paths(name));
    const auto source =
        store::newest_checkpoint(paths("good").checkpoints(), store::CheckpointPart::kAll, {});
    save_fork(job, *source, /*restart=*/false);
    train(job);
  }
};

TEST_F(BrokenWeightsTest, N1NonFiniteOnesAreNeverSavedAndRotateNothingAway) {
  RunOptions options = good_options();
  start("good", options);
  // A step of finite gradients that ends in infinite weights.
  options.optimizer.learning_rate = 1e30;
  options.optimizer.weight_decay = 1e30;
  options.optimizer.decay_rule = DecayRule::kMatrices;
  options.train.steps = 1;
  const auto expected = [&](const std::string& name) {
    return paths(name).folder.string() + ": step " + std::to_string(options.train.steps) +
           ": first.weight must be finite after this step, is not (nothing was saved, older "
           "checkpoints are kept; try a lower optimizer.learning_rate or optimizer.clip_norm)";
  };
  EXPECT_EQ(message_of<RunError>([&] { start("new", options); }), expected("new"));
  EXPECT_EQ(checkpoint_steps(paths("new").checkpoints()), std::vector<int64_t>{});
  options.train.steps = 7;
  EXPECT_EQ(message_of<RunError>([&] { fork_and_train("forked", options); }), expected("forked"));
  EXPECT_EQ(checkpoint_steps(paths("forked").checkpoints()), std::vector<int64_t>{6});
  EXPECT_EQ(state_bytes("forked"), state_bytes("good"));
  for (const char* name : {"new", "forked"}) {
    EXPECT_TRUE(read_records(paths(name).records()).empty()) << "nor measured";
  }
}

TEST_F(BrokenWeightsTest, N1OnesThatMeasureAsNoNumberRotateNothingAway) {
  RunOptions options = good_options();
  start("good", options);
  options.optimizer.learning_rate = 1e30;  // weights of 1e30 are finite, their squares are not
  options.train.steps = 7;
  fork_and_train("forked", options);
  const std::vector<Record> records = read_records(paths("forked").records());
  ASSERT_FALSE(records.empty());
  EXPECT_FALSE(std::isfinite(records.front().value));
  EXPECT_EQ(checkpoint_steps(paths("forked").checkpoints()), (std::vector<int64_t>{6, 7}));
  resume("forked", options);  // which knows what was measured before
  EXPECT_EQ(checkpoint_steps(paths("forked").checkpoints()), (std::vector<int64_t>{6, 7}));
}

TEST_F(BrokenWeightsTest, N1OnesThatWereNeverUsedRotateNothingAway) {
  RunOptions options = good_options();
  start("good", options);
  options.optimizer.learning_rate = 1e30;
  options.train.steps = 20;
  options.train.checkpoint_interval = 1;
  EXPECT_NE(message_of<RunError>([&] {
              fork_and_train("forked", options);
            }).find("step 8 (batch 7): loss must be finite"),
            std::string::npos);
  EXPECT_EQ(checkpoint_steps(paths("forked").checkpoints()), (std::vector<int64_t>{6, 7}));
  EXPECT_THROW(resume("forked", options), RunError);
  EXPECT_EQ(checkpoint_steps(paths("forked").checkpoints()), (std::vector<int64_t>{6, 7}));
}

TEST_F(BrokenWeightsTest, N1AnAverageThatMeasuresWellProvesNothingOfTheWeights) {
  RunOptions options = good_options();
  options.train.ema_decay = 1 - 1e-9;  // so much of the good weights that the average stays good
  options.train.eval_weights = Weights::kAverage;
  options.train.eval_interval = 1;
  start("good", options);
  options.optimizer.learning_rate = 1e15;  // too much for the weights' squares, not for 1e-9 of it
  options.train.steps = 20;
  options.train.checkpoint_interval = 1;
  EXPECT_THROW(fork_and_train("forked", options), RunError);
  EXPECT_EQ(checkpoint_steps(paths("forked").checkpoints()).front(), 6);
}

TEST_F(TrainTest, OlderCheckpointsGoOnceTheNewestIsKnownToBeOfUse) {
  RunOptions options = toy_run_options(9);
  options.train.eval_interval = 0;
  options.train.checkpoint_interval = 1;
  options.train.checkpoints_kept = 2;
  toy_hook = [&](const std::string& where, int64_t step) {
    if (where != "train" || step < 3) return;
    EXPECT_EQ(checkpoint_steps(paths("a").checkpoints()),
              (std::vector<int64_t>{step - 2, step - 1, step}));
  };
  start("a", options);
  EXPECT_EQ(checkpoint_steps(paths("a").checkpoints()), (std::vector<int64_t>{8, 9}));
}

TEST_F(TrainTest, S3AConfigurationInACheckpointReadsNoOtherFile) {
  RunOptions options = toy_run_options(3);
  start("a", options);
  const fs::path folder = paths("a").checkpoints() / "step-3";
  CheckpointFolder checkpoint = open_checkpoint(folder);
  checkpoint.state.config = "base = \"/etc/hostname\"\n" + checkpoint.state.config;
  write_file_atomically(folder / kStateFile,
                        checkpoint_state_text(checkpoint.state, checkpoint.files));
  EXPECT_EQ(message_of<ConfigError>([&] { resume("a", options); }),
            (paths("a").checkpoints() / "state.json").string() +
                ":1: base: a run's configuration is whole and has none");
}

TEST_F(TrainTest, D4WhatCanNotBeMeasuredIsFoundBeforeTheFirstStep) {
  RunOptions options = toy_run_options(3);
  options.task.get<ToyOptions>().eval_batches = 0;
  EXPECT_EQ(message_of<DataError>([&] { require_data(options, *make_toy_task(options)); }),
            "data: must have at least one batch to measure, has none (add data to it)");
  RunOptions usual = toy_run_options(3);
  require_data(usual, *make_toy_task(usual));
}

TEST_F(TrainTest, BestCheckpointIsSavedAndKept) {
  RunOptions options = toy_run_options(60);
  options.train.eval_interval = 5;
  options.train.checkpoint_interval = 0;
  options.train.checkpoints_kept = 1;
  options.train.best_metric = "error";
  start("a", options);
  int64_t best_step = 0;
  double best = INFINITY;
  for (Record& record : read_records(paths("a").records())) {
    if (record.metric != "error" || record.value >= best) continue;
    best = record.value;
    best_step = std::get<int64_t>(record.labels["step"]);
  }
  const std::vector<int64_t> steps = checkpoint_steps(paths("a").checkpoints());
  EXPECT_NE(std::find(steps.begin(), steps.end(), best_step), steps.end());
  EXPECT_EQ(steps.back(), 60);
  EXPECT_LE(steps.size(), 2);
}

TEST_F(TrainTest, C3AFailedSaveStopsOrGoesOnAsConfigured) {
  // A folder where the checkpoint's name is taken makes the rename fail; also for root.
  const auto block = [&](const std::string& name) {
    return [this, name](const std::string& where, int64_t step) {
      if (where == "train" && step == 2) {
        fs::create_directories(paths(name).checkpoints() / "step-3" / "taken");
      }
      if (where == "train" && step == 4) fs::remove_all(paths(name).checkpoints() / "step-3");
    };
  };
  RunOptions options = toy_run_options(9);
  toy_hook = block("stops");
  EXPECT_NE(message_of<std::runtime_error>([&] { start("stops", options); }).find("step-3"),
            std::string::npos);

  options.train.on_save_error = SaveErrorPolicy::kContinue;
  toy_hook = block("goes-on");
  start("goes-on", options);
  EXPECT_TRUE(any_contains(notices_, "training goes on without this checkpoint"));
  EXPECT_EQ(checkpoint_steps(paths("goes-on").checkpoints()), (std::vector<int64_t>{6, 9}));
}

TEST_F(TrainTest, C10AnotherThreadCountGivesTheSameBitsHere) {
  RunOptions options = toy_run_options(8);
  options.task.get<ToyOptions>().width = 300;
  start("whole", options);
  const int threads = at::get_num_threads();
  toy_hook = [](const std::string& where, int64_t step) {
    if (where == "train" && step == 5) throw Death();
  };
  EXPECT_THROW(start("a", options), Death);
  toy_hook = nullptr;
  at::set_num_threads(threads == 1 ? 2 : 1);
  resume("a", options);
  at::set_num_threads(threads);
  EXPECT_EQ(state_bytes("a"), state_bytes("whole"));
}

TEST_F(TrainTest, M3FileHandlesStayFlat) {
  const auto open_files = [] {
    return std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator());
  };
  RunOptions options = toy_run_options(600);
  options.train.checkpoint_interval = 20;
  options.train.eval_interval = 20;
  options.train.log_interval = 50;
  std::vector<int64_t> counts;
  toy_hook = [&](const std::string& where, int64_t step) {
    if (where == "train" && step % 100 == 50) counts.push_back(open_files());
  };
  start("a", options);
  EXPECT_EQ(*std::min_element(counts.begin(), counts.end()),
            *std::max_element(counts.begin(), counts.end()));
  EXPECT_EQ(read_records(paths("a").log()).size(), 12);
}

TEST_F(TrainTest, M3MemoryStaysFlat) {
  const auto resident_bytes = [] {
    std::ifstream file("/proc/self/statm");
    int64_t size = 0, resident = 0;
    file >> size >> resident;
    return resident * sysconf(_SC_PAGESIZE);
  };
  RunOptions options = toy_run_options(8000);
  options.train.checkpoint_interval = 100;
  options.train.eval_interval = 100;
  options.train.log_interval = 100;
  std::vector<int64_t> sizes;
  toy_hook = [&](const std::string& where, int64_t step) {
    if (where == "train" && step >= 1000 && step % 100 == 50) sizes.push_back(resident_bytes());
  };
  start("a", options);
  // A tensor that is kept at each of 7,000 steps takes 3 MB without its numbers.
  EXPECT_LT(*std::max_element(sizes.begin(), sizes.end()) - sizes.front(), 2 << 20);
}

}  // namespace
}  // namespace elliptical::run::testing
