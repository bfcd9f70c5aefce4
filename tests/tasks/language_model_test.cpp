// SPDX-License-Identifier: MIT
#include "elliptical/tasks/language_model.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "elliptical/base/config.h"
#include "elliptical/base/errors.h"
#include "tests/support/passes.h"
#include "tests/support/small_task.h"

namespace elliptical::tasks {
namespace {

using support::small_task_options;

std::string refusal(const LanguageModelOptions& options) {
  try {
    LanguageModelTask(options, 1);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

TEST(LanguageModelTask, BatchesAreAFunctionOfTheStep) {
  const LanguageModelTask task(small_task_options(), 1);
  const Batch seventh = task.train_batch(7);
  task.train_batch(3);
  const Batch again = task.train_batch(7);
  EXPECT_TRUE(at::equal(seventh.input, again.input));
  EXPECT_TRUE(at::equal(seventh.target, again.target));
  EXPECT_EQ(seventh.num_units, 24);
}

TEST(LanguageModelTask, ColumnsAreContiguousAndStartAnew) {
  const LanguageModelTask task(small_task_options(), 1);
  const std::vector<int32_t>& stream = task.corpus().stream(data::Split::kTrain);
  const auto rows = static_cast<int64_t>(stream.size()) / 3;
  EXPECT_EQ(task.num_train_units(), 3 * (rows - 1));
  const int64_t num_steps = (rows - 1 + 7) / 8;
  int64_t num_units = 0;
  for (int64_t step = 0; step < num_steps; ++step) {
    const Batch batch = task.train_batch(step);
    for (int64_t column = 0; column < 3; ++column) {
      for (int64_t n = 0; n < batch.input.size(1); ++n) {
        const auto place = static_cast<size_t>(column * rows + step * 8 + n);
        ASSERT_EQ(batch.input[column][n].item<int64_t>(), stream[place]);
        ASSERT_EQ(batch.target[column][n].item<int64_t>(), stream[place + 1]);
      }
    }
    num_units += batch.num_units;
  }
  EXPECT_EQ(num_units, task.num_train_units());
  EXPECT_TRUE(at::equal(task.train_batch(num_steps).input, task.train_batch(0).input));
}

TEST(LanguageModelTask, LossRepeatsWithItsKey) {
  LanguageModelTask task(small_task_options(), 1), same(small_task_options(), 1);
  LanguageModelTask other(small_task_options(), 2);
  const Batch batch = task.train_batch(0);
  const at::Tensor loss = support::loss_of(task, batch, 5);
  EXPECT_TRUE(at::equal(loss, support::loss_of(same, batch, 5)));
  EXPECT_FALSE(at::equal(loss, support::loss_of(task, batch, 6))) << "dropout";
  EXPECT_FALSE(at::equal(loss, support::loss_of(other, batch, 5))) << "first weights";
  loss.backward();
  for (const auto& item : task.model().named_parameters()) {
    EXPECT_TRUE(item.value().grad().defined()) << item.key();
  }
}

TEST(LanguageModelTask, ShrinksToSeconds) {
  LanguageModelOptions options;
  options.shrink();
  EXPECT_EQ(options.model.num_layers, 2);
  LanguageModelTask task(options, 1);
  EXPECT_TRUE(support::loss_of(task, task.train_batch(0), 1).isfinite().item<bool>());
}

TEST(LanguageModelTask, LabelsAndFingerprint) {
  const LanguageModelTask task(small_task_options(), 1);
  const auto labels = task.labels();
  EXPECT_EQ(std::get<std::string>(labels.at("task")), "language_model");
  EXPECT_EQ(std::get<std::string>(labels.at("attention")), "elliptical");
  EXPECT_FALSE(std::get<bool>(labels.at("leaks_future")));
  LanguageModelOptions more = small_task_options();
  more.data.train_lines = 41;
  EXPECT_NE(task.data_fingerprint(), LanguageModelTask(more, 1).data_fingerprint());
  EXPECT_EQ(task.data_fingerprint(), LanguageModelTask(small_task_options(), 2).data_fingerprint());
}

TEST(LanguageModelTask, CostsWhatTheArithmeticSays) {
  LanguageModelOptions options;  // LM small
  options.data.name = "wikitext-103";
  const Cost cost = lm_cost(options);
  EXPECT_EQ(cost.num_parameters, 44018394);
  EXPECT_EQ(cost.units_per_step, 96 * 256);
  EXPECT_EQ(cost.units_per_epoch, (103227021 / 96 - 1) * 96);
  // Six operations per weight of a product and token: 9.4 M in the layers, more than 2.5 M in the
  // head.
  EXPECT_GT(cost.flops_per_step, 6.0 * 96 * 256 * (9.4e6 + 2.5e6));
  EXPECT_LT(cost.flops_per_step, 6.0 * 96 * 256 * 44e6);
  EXPECT_GT(cost.bytes, 16.0 * 44018394);
}

TEST(LanguageModelTask, RehearsesWithoutTheData) {
  LanguageModelOptions options = small_task_options();
  options.data = {.name = "wikitext-103", .max_words = 300};
  options.batch_size = 100;
  const std::unique_ptr<Task> task = rehearse_lm(options);
  EXPECT_EQ(task->model().named_parameters()["embed.weight"].size(0), 300);
  const Batch batch = task->train_batch(0);
  EXPECT_EQ(batch.num_units, 8 * 8);
  EXPECT_TRUE(support::loss_of(*task, batch, 1).isfinite().item<bool>());
}

TEST(LanguageModelTask, OptionsSurvivePrinting) {
  LanguageModelOptions options = small_task_options(), read;
  const std::string text = to_toml(fields_of(options));
  read_recipe_text(text, "printed", fields_of(read));
  EXPECT_EQ(to_toml(fields_of(read)), text);
}

TEST(LanguageModelTask, RefusesWhatMakesNoSense) {
  LanguageModelOptions options = small_task_options();
  options.data.name = "wikitext-2";
  EXPECT_EQ(
      refusal(options),
      "data: train_lines goes with name = \"small-language\" only, got name = \"wikitext-2\"");
  options = small_task_options();
  options.batch_size = 1000;
  EXPECT_NE(refusal(options).find("must have at least 9000 tokens, has "), std::string::npos)
      << refusal(options);
}

TEST(TaskTable, KnowsItsTasks) {
  EXPECT_STREQ(find_task("language_model").name, "language_model");
  try {
    find_task("langauge_model");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(),
                 "task: unknown \"langauge_model\", did you mean \"language_model\"?");
  }
}

}  // namespace
}  // namespace elliptical::tasks
