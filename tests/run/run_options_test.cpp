// SPDX-License-Identifier: MIT
#include "elliptical/run/run_options.h"

#include <gtest/gtest.h>

#include <cmath>

#include "elliptical/base/config.h"
#include "elliptical/base/errors.h"
#include "elliptical/run/train.h"
#include "tests/run/toy_task.h"
#include "tests/support/error_message.h"

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

TEST(Schedule, DeitHasOneRateForEachEpochAndLagsByOne) {
  // 300 epochs of 1,251 steps; peak 5e-4 * 1024 / 512, five epochs of warm-up, floor 1e-5.
  constexpr int64_t kEpoch = 1251, kSteps = 300 * kEpoch;
  const OptimizerOptions optimizer{.learning_rate = 1e-3};
  const ScheduleOptions schedule{.warmup_steps = 5 * kEpoch,
                                 .warmup_start = 1e-6,
                                 .min_ratio = 0.01,
                                 .interval = kEpoch,
                                 .lag = kEpoch};
  const auto rate = [&](int64_t epoch, int64_t step = 0) {
    return learning_rate(optimizer, schedule, epoch * kEpoch + step, kSteps);
  };
  EXPECT_DOUBLE_EQ(rate(0), 1e-6);
  EXPECT_DOUBLE_EQ(rate(1), 1e-6);
  EXPECT_NEAR(rate(2), 1e-6 + (1e-3 - 1e-6) / 5, 1e-18);
  EXPECT_DOUBLE_EQ(rate(3), rate(3, kEpoch - 1));
  EXPECT_NE(rate(3, kEpoch - 1), rate(4));
  EXPECT_NEAR(rate(6), 1e-5 + 0.5 * (1e-3 - 1e-5) * (1 + std::cos(M_PI * 5 / 300)), 1e-18);
  // TR-2: the last epoch in a public log of this recipe, to all digits that it prints.
  EXPECT_NEAR(rate(299), 1.0108561680e-5, 0.5e-15);
}

TEST(Schedule, FanCoolsDownForTenEpochs) {
  // 200 epochs of 2,502 steps and 10 more at the lowest rate; no lag.
  constexpr int64_t kEpoch = 2502, kSteps = 210 * kEpoch;
  const OptimizerOptions optimizer{.learning_rate = 2e-3};
  const ScheduleOptions schedule{.warmup_steps = 5 * kEpoch,
                                 .warmup_start = 1e-6,
                                 .min_ratio = 5e-4,
                                 .cooldown_steps = 10 * kEpoch,
                                 .interval = kEpoch};
  const auto rate = [&](int64_t epoch) {
    return learning_rate(optimizer, schedule, epoch * kEpoch, kSteps);
  };
  EXPECT_NEAR(rate(5), 1e-6 + 0.5 * (2e-3 - 1e-6) * (1 + std::cos(M_PI * 5 / 200)), 1e-18);
  EXPECT_NEAR(rate(100), 1e-6 + 0.5 * (2e-3 - 1e-6), 1e-18);
  for (const int64_t epoch : {200, 205, 209}) EXPECT_NEAR(rate(epoch), 1e-6, 1e-18) << epoch;
  EXPECT_GT(rate(199), 1e-6);
}

TEST(TrainOptions, AnAverageMustBeKeptToBeMeasured) {
  TrainOptions options{.ema_decay = 0.9, .eval_weights = Weights::kAverage};
  check(options);
  options.ema_decay = 0;
  EXPECT_EQ(test::error_message<ConfigError>([&] { check(options); }),
            "train: ema_decay must be above 0 with eval_weights = \"ema\", got 0 (0.9999, for "
            "instance)");
}

TEST(DecayRule, MatricesAreNotVectorsBiasesTokensOrPositions) {
  for (const char* name : {"blocks.0.attn.qkv.bias", "cls_token", "dist_token", "pos_embed",
                           "model.pos_embed", "bias"}) {
    EXPECT_FALSE(decays(DecayRule::kMatrices, name, 3)) << name;
    EXPECT_TRUE(decays(DecayRule::kAll, name, 3)) << name;
  }
  EXPECT_TRUE(decays(DecayRule::kMatrices, "blocks.0.attn.qkv.weight", 2));
  EXPECT_TRUE(decays(DecayRule::kMatrices, "patch_embed.proj.weight", 4));
  EXPECT_FALSE(decays(DecayRule::kMatrices, "blocks.0.norm1.weight", 1));
}

TEST(RunOptions, ConfigRoundTrip) {
  RunOptions options = testing::toy_run_options(7);
  options.schedule.shape = ScheduleShape::kConstant;
  options.schedule.warmup_start = 1e-6;
  options.optimizer.decay_rule = DecayRule::kMatrices;
  options.schedule.cooldown_steps = 3;
  options.train.ema_decay = 0.9;
  options.train.eval_weights = Weights::kAverage;
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
