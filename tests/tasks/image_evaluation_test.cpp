// SPDX-License-Identifier: MIT
#include "elliptical/tasks/image_evaluation.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "elliptical/base/config.h"
#include "elliptical/base/errors.h"
#include "elliptical/data/corrupt/mce.h"
#include "tests/support/error_message.h"
#include "tests/support/small_pictures_task.h"

namespace elliptical::tasks {
namespace {

using support::small_vit_options;
using test::error_message;

struct Measured {
  std::vector<Record> records;
  Dump dump;
  std::map<std::string, LabelValue> labels;

  double value(const std::string& metric) const {
    for (const Record& record : records) {
      if (record.metric == metric) return record.value;
    }
    return -1;
  }
  int64_t count(const std::string& metric) const {
    int64_t count = 0;
    for (const Record& record : records) count += record.metric == metric;
    return count;
  }
  at::Tensor dumped(const std::string& name) const { return at::cat(dump.at(name)); }
};

Measured measure(const std::vector<std::string>& changes) {
  ClassifyImageTask task(small_vit_options(), 1);
  task.model().eval();
  ImageEvalOptions options;
  options.max_pictures = 30;
  options.batch_size = 8;
  apply_overrides(changes, fields_of(options));
  const auto set = task.eval_set(options);
  Measured result;
  Scores scores;
  for (int64_t i = 0; i < set->size(); ++i) task.score(set->get(i), scores, &result.dump);
  result.records = task.metrics(scores);
  result.labels = set->labels();
  return result;
}

// From the dumped logits, picture by picture.
TEST(ImageEvaluation, AccuraciesAndLossAreThoseOfTheLogits) {
  const Measured measured = measure({"blocks=3", "per_class=true"});
  const at::Tensor logits = measured.dumped("logits").to(at::kDouble);
  const at::Tensor labels = measured.dumped("labels");
  ASSERT_EQ(logits.size(0), 30);
  double first = 0, fifth = 0, loss = 0;
  std::array<double, 3> blocks{};
  for (int64_t i = 0; i < 30; ++i) {
    const auto label = labels[i].item<int64_t>();
    const int64_t above = (logits[i] > logits[i][label]).sum().item<int64_t>();
    first += above == 0;
    fifth += above < 5;
    blocks[static_cast<size_t>(i / 10)] += above == 0;
    loss -= logits[i].log_softmax(0)[label].item<double>();
  }
  EXPECT_EQ(measured.records.front().metric, "accuracy");
  EXPECT_EQ(measured.records.front().count, 30);
  EXPECT_NEAR(measured.value("accuracy"), 100 * first / 30, 1e-9);
  EXPECT_NEAR(measured.value("top5_accuracy"), 100 * fifth / 30, 1e-9);
  EXPECT_NEAR(measured.value("loss"), loss / 30, 1e-9);
  EXPECT_EQ(measured.count("class_accuracy"), 10);
  for (const Record& record : measured.records) {
    if (record.metric != "block_accuracy") continue;
    const int64_t block = std::get<int64_t>(record.labels.at("block"));
    EXPECT_NEAR(record.value, 10 * blocks[static_cast<size_t>(block)], 1e-9);
    EXPECT_EQ(record.count, 10);
  }
  EXPECT_EQ(measured.count("block_accuracy"), 3);
  EXPECT_EQ(measured.count("metric_mean"), 1);
}

TEST(ImageEvaluation, CorruptionsAreMeasuredOneByOneAndTogether) {
  const Measured two = measure({"corrupt=gaussian_noise,fog", "severity=3"});
  EXPECT_EQ(two.records.front().count, 60);
  EXPECT_EQ(two.count("corrupted_accuracy"), 2);
  EXPECT_EQ(two.count("mce"), 0);
  EXPECT_EQ(std::get<std::string>(two.labels.at("perturbation")), "corruption");
  EXPECT_EQ(std::get<std::string>(two.labels.at("corruption")), "gaussian_noise,fog");
  EXPECT_EQ(std::get<int64_t>(two.labels.at("severity")), 3);
  EXPECT_EQ(two.dumped("passes").max().item<int64_t>(), 1);
  double sum = 0;
  for (const Record& record : two.records) {
    if (record.metric == "corrupted_accuracy") sum += record.value;
  }
  EXPECT_NEAR(two.value("accuracy"), sum / 2, 1e-9);

  const Measured all = measure({"corrupt=contrast", "max_pictures=8"});
  EXPECT_EQ(all.count("corrupted_accuracy"), 5);
  EXPECT_EQ(all.count("corruption_error"), 1);
}

// AlexNet's own errors give 100 exactly.
TEST(ImageEvaluation, MceIsRelativeToAlexNet) {
  Scores scores;
  scores.add("accuracy", 50, 1);
  for (const data::CorruptionErrors& of_one : data::alexnet_errors()) {
    for (size_t s = 0; s < of_one.errors.size(); ++s) {
      scores.add(
          "corrupted_accuracy", 100 * (1 - of_one.errors[s]), 1,
          {{"corruption_name", of_one.name}, {"corruption_severity", static_cast<int64_t>(s + 1)}});
    }
  }
  double mce = 0, extra = 0;
  for (const Record& record : picture_metrics(scores)) {
    if (record.metric == "mce") mce = record.value;
    if (record.metric == "extra_mce") extra = record.value;
    if (record.metric == "corruption_error") {
      EXPECT_NEAR(record.value, 100, 1e-9);
    }
  }
  EXPECT_NEAR(mce, 100, 1e-9);
  EXPECT_NEAR(extra, 100, 1e-9);
}

// Each picture is damaged in all ways, so mCE of all is the mean of that of parts of the pictures.
TEST(ImageEvaluation, MceOfBlocks) {
  Scores scores;
  int64_t place = 0;
  for (const data::CorruptionErrors& of_one : data::alexnet_errors()) {
    for (int64_t severity = 1; severity <= 5; ++severity) {
      for (int64_t picture = 0; picture < 6; ++picture) {
        const double right = ++place * 7 % 5 < 3 ? 100 : 0;
        const int64_t block = picture / 2;
        Scores::Labels labels = {{"corruption_name", of_one.name},
                                 {"corruption_severity", severity}};
        scores.add("accuracy", right, 1);
        scores.add("corrupted_accuracy", right, 1, labels);
        labels["block"] = block;
        scores.add("block_corrupted_accuracy", right, 1, labels);
      }
    }
  }
  double mce = 0, sum = 0;
  int64_t count = 0;
  std::vector<LabelValue> blocks;
  for (const Record& record : picture_metrics(scores)) {
    EXPECT_NE(record.metric, "block_corrupted_accuracy") << "there would be thousands";
    if (record.metric == "mce") mce = record.value;
    if (record.metric != "block_mce") continue;
    blocks.push_back(record.labels.at("block"));
    sum += record.value * static_cast<double>(record.count);
    count += record.count;
  }
  EXPECT_EQ(blocks, (std::vector<LabelValue>{int64_t{0}, int64_t{1}, int64_t{2}}));
  EXPECT_EQ(count, 6 * 5 * 19);
  EXPECT_NEAR(sum / static_cast<double>(count), mce, 1e-9);
}

TEST(ImageEvaluation, ListsOfCorruptions) {
  EXPECT_EQ(corruptions_of("none").size(), 0);
  EXPECT_EQ(corruptions_of("main").size(), 15);
  EXPECT_EQ(corruptions_of("extra").size(), 4);
  EXPECT_EQ(corruptions_of("all").size(), 19);
  EXPECT_EQ(corruptions_of("fog,main").size(), 15);
  EXPECT_EQ(error_message<ConfigError>([] { corruptions_of("frog"); }),
            "eval: corrupt: unknown \"frog\", did you mean \"fog\"?");
}

TEST(ImageEvaluation, EveryOptionHasAnEffect) {
  const at::Tensor usual = measure({}).dumped("logits");
  for (const char* change : {"split=test", "max_pictures=29", "corrupt=fog"}) {
    EXPECT_FALSE(measure({change}).dumped("logits").equal(usual)) << change;
  }
  const std::vector<std::string> noise = {"corrupt=gaussian_noise", "severity=5"};
  const at::Tensor noisy = measure(noise).dumped("logits");
  EXPECT_FALSE(measure({noise[0], "severity=1"}).dumped("logits").equal(noisy));
  EXPECT_FALSE(measure({noise[0], noise[1], "corruption_seed=2"}).dumped("logits").equal(noisy));
  EXPECT_GT(measure({"metric_profile=true"}).count("metric_profile"), 0);
  EXPECT_EQ(measure({}).count("metric_profile"), 0);
  EXPECT_EQ(measure({"batch_size=30"}).dump.at("logits").size(), 1);
}

TEST(ImageEvaluation, DataOfOtherClassesAreRefused) {
  const ImageDataOptions data;
  ImageEvalOptions options;
  EXPECT_EQ(error_message<DataError>([&] { ImageEvalSet(options, data, 16, 7); }),
            "eval: data must have the 7 classes of the model, or be known to have some of them, "
            "small-pictures has 10 (choose other data: --set data=...)");
}

}  // namespace
}  // namespace elliptical::tasks
