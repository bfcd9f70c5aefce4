// SPDX-License-Identifier: MIT
#include "elliptical/run/run_options.h"

#include <gtest/gtest.h>

#include <cmath>

#include "elliptical/base/config.h"
#include "elliptical/run/train.h"
#include "tests/run/toy_task.h"

namespace elliptical::run {
namespace {

TEST(Schedule, WarmsUpLinearly) {
  const OptimizerOptions optimizer{.learning_rate = 1.0};
  const ScheduleOptions schedule{.warmup_steps = 4};
  EXPECT_DOUBLE_EQ(learning_rate(optimizer, schedule, 0, 100), 0.25);
  EXPECT_DOUBLE_EQ(learning_rate(optimizer, schedule, 2, 100), 0.75);
  EXPECT_DOUBLE_EQ(learning_rate(optimizer, schedule, 3, 100), 1.0);
}

TEST(Schedule, CosineIsAFunctionOfTheStepItself) {
  const OptimizerOptions optimizer{.learning_rate = 2.0};
  const ScheduleOptions schedule{.warmup_steps = 10, .min_ratio = 0.1};
  EXPECT_DOUBLE_EQ(learning_rate(optimizer, schedule, 50, 100), 2.0 * (0.1 + 0.9 * 0.5));
  // Not 1 at the end of the warm-up: the paper's code has this small jump.
  EXPECT_DOUBLE_EQ(learning_rate(optimizer, schedule, 10, 100),
                   2.0 * (0.1 + 0.9 * 0.5 * (1 + std::cos(M_PI * 0.1))));
  EXPECT_NEAR(learning_rate(optimizer, schedule, 100, 100), 0.2, 1e-15);
  EXPECT_NEAR(learning_rate(optimizer, schedule, 1000, 100), 0.2, 1e-15);
}

TEST(Schedule, ConstantStays) {
  const ScheduleOptions schedule{.shape = ScheduleShape::kConstant, .warmup_steps = 0};
  EXPECT_DOUBLE_EQ(learning_rate({.learning_rate = 0.5}, schedule, 99, 100), 0.5);
}

TEST(RunOptions, ConfigRoundTrip) {
  RunOptions options = testing::toy_run_options(7);
  options.schedule.shape = ScheduleShape::kConstant;
  options.train.best_metric = "error";
  options.train.best_order = MetricOrder::kHighest;
  options.train.on_save_error = SaveErrorPolicy::kContinue;
  options.task.get<testing::ToyOptions>().width = 9;
  RunOptions again(testing::toy_choices());
  read_recipe_text(config_text(options), "config.toml", fields_of(again));
  EXPECT_TRUE(differences(fields_of(again), fields_of(options)).empty());
  EXPECT_EQ(config_text(again), config_text(options));
  EXPECT_EQ(again.task.get<testing::ToyOptions>().width, 9);
}

TEST(RunOptions, ShrinkNeverEnlarges) {
  RunOptions options = testing::toy_run_options(2);
  options.train.eval_interval = 0;
  shrink(options);
  EXPECT_EQ(options.train.steps, 2);
  EXPECT_EQ(options.train.eval_interval, 0);
  options = testing::toy_run_options(100000);
  shrink(options);
  EXPECT_LE(options.train.steps, 10);
}

}  // namespace
}  // namespace elliptical::run
