// SPDX-License-Identifier: MIT
//
// Processes that train together: the parts of a training batch that they compute are the batch.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "elliptical/base/errors.h"
#include "tests/support/error_message.h"
#include "tests/support/small_pictures_task.h"
#include "tests/support/small_task.h"

namespace elliptical::tasks {
namespace {

TaskSetup setup_of(int64_t rank, int64_t count) {
  return {.seed = 1, .shard = {.rank = rank, .count = count}};
}

template <class SomeTask, class SomeOptions>
void expect_parts_to_be_the_whole(const SomeOptions& options, int64_t count) {
  const SomeTask whole(options, 1);
  for (const int64_t step : {0, 5}) {
    const Batch all = whole.train_batch(step);
    std::vector<at::Tensor> inputs, targets;
    int64_t num_units = 0;
    for (int64_t rank = 0; rank < count; ++rank) {
      const Batch part = SomeTask(options, setup_of(rank, count)).train_batch(step);
      EXPECT_EQ(part.input.size(0) * count, all.input.size(0));
      inputs.push_back(part.input);
      targets.push_back(part.target);
      num_units += part.num_units;
    }
    EXPECT_TRUE(at::equal(at::cat(inputs), all.input));
    EXPECT_TRUE(at::equal(at::cat(targets), all.target));
    EXPECT_EQ(num_units, all.num_units);
  }
}

TEST(Shards, OfTextAreItsColumns) {
  for (const int64_t count : {1, 3}) {
    expect_parts_to_be_the_whole<LanguageModelTask>(support::small_task_options(), count);
  }
}

TEST(Shards, OfPicturesKeepThePairsThatAreMixed) {
  ClassifyImageOptions options = support::small_vit_options();
  options.mix.probability = 1.0;
  for (const int64_t count : {2, 4}) {
    expect_parts_to_be_the_whole<ClassifyImageTask>(options, count);
  }
}

TEST(Shards, AreEqualOrRefused) {
  const std::string message = "batch_size: must be a multiple of the number of processes, 2, got 3";
  EXPECT_EQ(test::error_message<ConfigError>(
                [] { LanguageModelTask(support::small_task_options(), setup_of(0, 2)); }),
            message);
  ClassifyImageOptions options = support::small_vit_options();
  options.batch_size = 3;
  options.mix.probability = 0;
  EXPECT_EQ(test::error_message<ConfigError>([&] { ClassifyImageTask(options, setup_of(1, 2)); }),
            message);
}

}  // namespace
}  // namespace elliptical::tasks
