// SPDX-License-Identifier: MIT
#include "elliptical/tasks/image_evaluation.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

#include "elliptical/base/config.h"
#include "elliptical/base/errors.h"
#include "elliptical/data/corrupt/mce.h"
#include "elliptical/data/image/codec.h"
#include "tests/support/error_message.h"
#include "tests/support/passes.h"
#include "tests/support/small_pictures_task.h"
#include "tests/support/temporary_folder.h"

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
  for (int64_t i = 0; i < set->size(); ++i) support::score(task, *set, i, scores, &result.dump);
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
  const at::Tensor numbers = measured.dumped("pictures");
  std::array<double, 3> blocks{};
  std::map<int64_t, int64_t> of_class;
  for (int64_t i = 0; i < 30; ++i) {
    const auto label = labels[i].item<int64_t>();
    EXPECT_EQ(numbers[i].item<int64_t>() % 10, label) << "classes take turns";
    const int64_t above = (logits[i] > logits[i][label]).sum().item<int64_t>();
    first += above == 0;
    fifth += above < 5;
    blocks[static_cast<size_t>(of_class[label]++)] += above == 0;  // three of each: one a block
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
    EXPECT_EQ(record.labels.at("cut"), LabelValue(std::string("balanced")));
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
  const Measured compressed = measure({noise[0], noise[1], "corruption_jpeg=true"});
  EXPECT_FALSE(compressed.dumped("logits").equal(noisy));
  EXPECT_EQ(compressed.labels.at("corruption_jpeg"), LabelValue(true));
  EXPECT_FALSE(measure(noise).labels.contains("corruption_jpeg"));
  EXPECT_GT(measure({"metric_profile=true"}).count("metric_profile"), 0);
  EXPECT_EQ(measure({}).count("metric_profile"), 0);
  EXPECT_EQ(measure({"batch_size=30"}).dump.at("logits").size(), 1);
}

/// Four classes in folders, class after class: 8, 8, 8 and 2 pictures, each class of one colour.
class ClassFolders : public ::testing::Test {
 protected:
  void SetUp() override {
    for (int k = 0; k < 4; ++k) {
      for (const char* split : {"train", "val"}) {
        const auto place = folder_.path() / split / ("class-" + std::to_string(k));
        std::filesystem::create_directories(place);
        for (int i = 0; i < (k == 3 ? 2 : 8); ++i) {
          write_grey(place / (std::to_string(i) + ".png"), 60 * k);
        }
      }
    }
    data_.name = folder_.path().string();
  }

  static void write_grey(const std::filesystem::path& path, int grey) {
    data::Image image(16, 16);
    std::fill(image.pixels.begin(), image.pixels.end(), static_cast<uint8_t>(grey));
    const std::vector<uint8_t> bytes = data::encode_png(image);
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }

  std::unique_ptr<ImageEvalSet> open(const std::vector<std::string>& changes) {
    ImageEvalOptions options;
    apply_overrides(changes, fields_of(options));
    return std::make_unique<ImageEvalSet>(options, data_, 16, 4);
  }

  const test::TemporaryFolder folder_;
  ImageDataOptions data_;
};

/// Labels of all pictures that a set reads, in order.
std::vector<int64_t> labels_of(const ImageEvalSet& set) {
  std::vector<int64_t> labels;
  for (int64_t b = 0; b < set.size(); ++b) {
    const at::Tensor targets = set.get(b).target;
    for (int64_t i = 0; i < targets.size(0); ++i) labels.push_back(targets[i].item<int64_t>());
  }
  return labels;
}

std::vector<int64_t> class_counts(const std::vector<int64_t>& labels) {
  std::vector<int64_t> counts(4);
  for (const int64_t label : labels) ++counts[static_cast<size_t>(label)];
  return counts;
}

// The first pictures of class folders are of the first classes only.
TEST_F(ClassFolders, FewerPicturesAreOfAllClassesAlike) {
  const auto eight = open({"max_pictures=8"});
  EXPECT_EQ(class_counts(labels_of(*eight)), (std::vector<int64_t>{2, 2, 2, 2}));
  EXPECT_EQ(class_counts(labels_of(*open({"max_pictures=14"}))),
            (std::vector<int64_t>{4, 4, 4, 2}));
  EXPECT_EQ(eight->labels().at("max_pictures"), LabelValue(int64_t{8}));
  EXPECT_EQ(eight->labels().at("pictures_total"), LabelValue(int64_t{26}));
  EXPECT_EQ(eight->labels().at("classes"), LabelValue(int64_t{4}));
  EXPECT_EQ(eight->labels().at("subset"), LabelValue(std::string("balanced")));
  const std::string from = "(" + data_.name + ", valid), ";
  EXPECT_EQ(eight->description(), "pictures: 8 of 26 " + from + "2 of each of 4 classes");
  EXPECT_EQ(open({"max_pictures=14"})->description(),
            "pictures: 14 of 26 " + from + "2 to 4 of each of 4 classes");
}

TEST_F(ClassFolders, TheSamePicturesAreChosenWhateverElseIsAsked) {
  const auto numbers = [&](const std::vector<std::string>& changes) {
    const auto set = open(changes);
    std::vector<int64_t> result;
    for (int64_t i = 0; i < set->num_pictures(); ++i) result.push_back(set->picture_number(i));
    return result;
  };
  const std::vector<int64_t> nine = numbers({"max_pictures=9"});
  EXPECT_EQ(numbers({"max_pictures=9", "batch_size=2"}), nine);
  EXPECT_EQ(numbers({"max_pictures=9", "corrupt=fog", "blocks=5"}), nine);
  const std::vector<int64_t> five = numbers({"max_pictures=5"});
  EXPECT_TRUE(std::equal(five.begin(), five.end(), nine.begin())) << "fewer begin more";
}

TEST_F(ClassFolders, AllPicturesAreReadInTheirOrder) {
  for (const char* all : {"max_pictures=0", "max_pictures=26", "max_pictures=100"}) {
    const auto set = open({all});
    EXPECT_TRUE(std::ranges::is_sorted(labels_of(*set)));
    EXPECT_EQ(set->picture_number(7), 7);
    EXPECT_FALSE(set->labels().contains("max_pictures") || set->labels().contains("subset"));
    EXPECT_EQ(set->description(), "pictures: all 26 (" + data_.name + ", valid), 4 classes");
  }
}

// Blocks of neighbours would be classes here.
TEST_F(ClassFolders, BlocksHaveAllClassesAlike) {
  for (const auto& [count, expected] :
       {std::pair("max_pictures=0", std::vector<int64_t>{7, 7, 6, 6}),
        std::pair("max_pictures=12", std::vector<int64_t>{3, 3, 3, 3})}) {
    const auto set = open({"blocks=4", count});
    const std::vector<int64_t> labels = labels_of(*set);
    std::vector<int64_t> sizes(4);
    std::map<std::pair<int64_t, int64_t>, int64_t> together;
    for (int64_t i = 0; i < set->num_pictures(); ++i) {
      ++sizes[static_cast<size_t>(set->block_of(i))];
      ++together[{set->block_of(i), labels[static_cast<size_t>(i)]}];
    }
    EXPECT_EQ(sizes, expected);
    const std::vector<int64_t> of_class = class_counts(labels);
    for (int64_t block = 0; block < 4; ++block) {
      for (int64_t k = 0; k < 4; ++k) {
        const int64_t share = of_class[static_cast<size_t>(k)] / 4;
        EXPECT_GE(together[std::pair(block, k)], share);
        EXPECT_LE(together[std::pair(block, k)], share + 1);
      }
    }
  }
}

// Damage is drawn for the number of a picture, so it does not depend on which others are read.
TEST_F(ClassFolders, DamageBelongsToThePicture) {
  const auto few = open({"max_pictures=3", "corrupt=gaussian_noise", "severity=5"});
  const auto all = open({"corrupt=gaussian_noise", "severity=5"});
  const at::Tensor pixels = all->get(0).input;
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(few->get(0).input[i].equal(pixels[few->picture_number(i)])) << i;
  }
}

/// Damaged pictures in files: NOISE/LEVEL/CLASS/PICTURE, each level of another grey.
class DamagedFiles : public ClassFolders {
 protected:
  void SetUp() override {
    for (const data::CorruptionEntry& corruption : data::corruption_table()) {
      for (int level = 1; level <= data::kNumSeverities; ++level) {
        for (int k = 0; k < 4; ++k) add(corruption.name, level, k);
      }
    }
    data_.name = folder_.path().string();
  }
  void add(const std::string& noise, int level, int k) {
    const auto place =
        folder_.path() / noise / std::to_string(level) / ("class-" + std::to_string(k));
    std::filesystem::create_directories(place);
    for (int i = 0; i < 2; ++i) write_grey(place / (std::to_string(i) + ".png"), 40 * level + k);
  }
  void remove(const std::string& damage) { std::filesystem::remove_all(folder_.path() / damage); }
};

TEST_F(DamagedFiles, AreReadOnePassForEachFolder) {
  const auto set = open({"split=test", "batch_size=3", "max_pictures=4", "blocks=2"});
  ASSERT_EQ(set->readings().size(), 95U);
  EXPECT_EQ(set->size(), 95 * 2);
  EXPECT_EQ(set->description(), "pictures: 4 of 8 (" + data_.name +
                                    ", test), 1 of each of 4 classes; 95 kinds of damage");
  for (const int64_t pass : {0, 7, 94}) {
    const Batch batch = set->get(2 * pass);
    const int level = set->readings()[static_cast<size_t>(pass)].severity;
    for (int64_t i = 0; i < 3; ++i) {
      const auto grey = static_cast<double>(40 * level + batch.target[i].item<int64_t>());
      EXPECT_NEAR(batch.input[i].mean().item<double>(), grey / 255, 1e-6) << "not damaged again";
    }
  }
  const auto labels = set->labels();
  EXPECT_EQ(labels.at("perturbation"), LabelValue(std::string("corruption")));
  EXPECT_EQ(labels.at("corruption"), LabelValue(std::string("all")));
  EXPECT_EQ(labels.at("severity"), LabelValue(int64_t{0}));
  EXPECT_EQ(labels.at("data"), LabelValue(data_.name));
  EXPECT_EQ(labels.at("subset"), LabelValue(std::string("balanced")));
  EXPECT_FALSE(labels.contains("corruption_seed"));
}

TEST_F(DamagedFiles, SomeOfThemAreChosenByName) {
  const auto set = open({"split=test", "corrupt=fog,snow", "severity=3"});
  ASSERT_EQ(set->readings().size(), 2U);
  EXPECT_EQ(std::string(set->readings()[0].corruption->name), "fog") << "as asked for";
  EXPECT_EQ(set->readings()[0].severity, 3);
  EXPECT_EQ(set->labels().at("corruption"), LabelValue(std::string("fog,snow")));
  remove("fog/3");
  EXPECT_EQ(error_message<DataError>([&] { open({"split=test", "corrupt=fog", "severity=3"}); }),
            data_.name + ": must hold fog at severity 3, does not");
  EXPECT_EQ(error_message<ConfigError>([&] { open({"split=test", "corruption_jpeg=true"}); }),
            "eval: corruption_jpeg must be false for data that are damaged files, which " +
                data_.name + " has (they are read as they are)");
}

TEST_F(DamagedFiles, WhatIsMissingIsTold) {
  for (const char* damage : {"fog/3", "snow/1", "snow/2", "saturate"}) remove(damage);
  EXPECT_EQ(open({"split=test"})->description(),
            "pictures: all 8 (" + data_.name +
                ", test), 4 classes; 87 kinds of damage, not there: snow/1, snow/2, fog/3, "
                "saturate (no mCE, no extra mCE)");
  EXPECT_EQ(open({"split=test", "corrupt=extra"})->description(),
            "pictures: all 8 (" + data_.name +
                ", test), 4 classes; 15 kinds of damage, not there: saturate (no extra mCE)");
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
