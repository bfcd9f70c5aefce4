// SPDX-License-Identifier: MIT
#include "elliptical/run/evaluate.h"

#include <torch/torch.h>

#include "tests/run/run_fixture.h"

namespace elliptical::run::testing {
namespace {

using EvaluateTest = RunTest;

TEST_F(EvaluateTest, RecordsCarryEveryLabelAndTheDumpEveryTarget) {
  const std::unique_ptr<tasks::Task> task = make_toy_task(toy_run_options(1));
  ToyEvalOptions options;
  options.noise = 0.5;
  tasks::Dump dump;
  std::vector<Progress> shown;
  task->model().train();
  const auto records =
      evaluate(*task, options, {{"run", std::string("r")}, {"step", int64_t{4}}},
               {.progress = [&](const Progress& progress) { shown.push_back(progress); }}, &dump);
  ASSERT_TRUE(records);
  ASSERT_EQ(records->size(), 2);
  const Labels expected = {{"noise", 0.5},
                           {"run", std::string("r")},
                           {"split", std::string("valid")},
                           {"step", int64_t{4}},
                           {"task", std::string("toy")}};
  EXPECT_EQ(records->front().labels, expected);
  const at::Tensor errors = at::cat(dump.at("error"));
  EXPECT_EQ(errors.numel(), 12);
  EXPECT_NEAR(records->front().value, errors.to(at::kDouble).mean().item<double>(), 1e-6);
  ASSERT_EQ(shown.size(), 3);
  EXPECT_EQ(shown.back().phase, "eval");
  EXPECT_EQ(shown.back().done, shown.back().total);
  EXPECT_TRUE(task->model().is_training()) << "left in the mode it was found in";
}

TEST_F(EvaluateTest, WhatAnEvaluationCostsIsSaidBeforeItsFirstBatch) {
  RunOptions run_options = toy_run_options(1);
  run_options.task.get<ToyOptions>().eval_cost = "much: 12 rows are read twice";
  run_options.task.get<ToyOptions>().eval_batches = 9;
  const std::unique_ptr<tasks::Task> task = make_toy_task(run_options);
  ToyEvalOptions options;
  std::vector<std::string> said;
  toy_hook = [&](const std::string&, int64_t index) { said.push_back(std::to_string(index)); };
  evaluate(*task, options, {}, {.notice = [&](const std::string& line) { said.push_back(line); }});
  ASSERT_EQ(said.size(), 11);
  EXPECT_EQ(said[0], "eval: much: 12 rows are read twice");
  EXPECT_EQ(said[5], "4");
  EXPECT_EQ(said[6], "eval: about 0:00 at the speed of the first batches");
}

TEST_F(EvaluateTest, AModelLeftInEvaluationModeStaysThere) {
  const std::unique_ptr<tasks::Task> task = make_toy_task(toy_run_options(1));
  task->model().eval();
  ToyEvalOptions options;
  toy_hook = [](const std::string&, int64_t index) {
    if (index == 1) throw std::runtime_error("damaged batch");
  };
  EXPECT_THROW(evaluate(*task, options, {}, {}), std::runtime_error);
  EXPECT_FALSE(task->model().is_training());
}

}  // namespace
}  // namespace elliptical::run::testing
