// SPDX-License-Identifier: MIT
//
// What records say, and measures whose whole is a ratio of sums: a toy of two classes whose
// intersections over unions are computed directly beside.
#include "elliptical/measure/measurements.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "elliptical/measure/labels.h"
#include "elliptical/tasks/language_model_measures.h"

namespace elliptical::measure {
namespace {

constexpr Measure kIou{.name = "mIoU",
                       .unit = "points",
                       .value_unit = "%",
                       .higher_is_better = true,
                       .margin = 0.05,
                       .whole = Whole::kRatioOfSums,
                       .scale = 100};
constexpr std::array kToyNumbers = {ComparedNumber{.name = "clean",
                                                   .place = "on clean pictures",
                                                   .measure = &kIou,
                                                   .metric = "miou",
                                                   .block_metric = "block_iou"}};
constexpr TaskMeasures kToy{.task = "toy", .data = "pictures", .numbers = kToyNumbers};

/// Of each block and class: pixels in the intersection, in the union.
using Counts = std::vector<std::array<std::array<double, 2>, 2>>;
const Counts kCounts = {{{{8, 10}, {1, 4}}}, {{{3, 9}, {5, 5}}}, {{{7, 8}, {0, 0}}}};

/// Mean over the classes of intersection over union, over these blocks.
double direct_miou(const Counts& counts, const std::vector<size_t>& drawn) {
  double sum = 0;
  int num_classes = 0;
  for (const size_t c : {0, 1}) {
    double intersection = 0, both = 0;
    for (const size_t place : drawn) {
      intersection += counts[place][c][0];
      both += counts[place][c][1];
    }
    if (both == 0) continue;
    sum += intersection / both;
    ++num_classes;
  }
  return 100 * sum / num_classes;
}

std::vector<Record> records_of(const Counts& counts) {
  const std::map<std::string, LabelValue> labels = {{"data", std::string("d")},
                                                    {"perturbation", std::string("none")},
                                                    {"source", std::string("eval")},
                                                    {"split", std::string("test")},
                                                    {"step", int64_t{5}}};
  std::vector<Record> records = {{"miou", direct_miou(counts, {0, 1, 2}), 30, labels}};
  for (size_t block = 0; block < counts.size(); ++block) {
    for (size_t c = 0; c < 2; ++c) {
      auto of_class = labels;
      of_class["block"] = static_cast<int64_t>(block);
      of_class[kClass] = static_cast<int64_t>(c);
      records.push_back(
          ratio_record("block_iou", counts[block][c][0], counts[block][c][1], 10, of_class));
    }
  }
  return records;
}

const Measurement& only_one(const Measurements& measurements) {
  return measurements.begin()->second.begin()->second;
}

TEST(RatioOfSums, IsReadFromRecordsOfItsParts) {
  std::vector<Record> records;  // as a file gives them back
  for (const Record& record : records_of(kCounts)) {
    records.push_back(parse_record(to_json_line(record)));
  }
  const Measurements measurements = measurements_at(records, 5, kToy);
  ASSERT_EQ(measurements.size(), 1);
  const std::vector<Block>& blocks = only_one(measurements).blocks;
  ASSERT_EQ(blocks.size(), 3);
  for (const Block& block : blocks) ASSERT_EQ(block.ratios.size(), 2);
  EXPECT_EQ(blocks[1].ratios[1].numerator, 5);
  for (const std::vector<size_t>& drawn :
       {std::vector<size_t>{0, 1, 2}, {0, 0, 1}, {2, 2, 2}, {1, 2, 0}}) {
    EXPECT_DOUBLE_EQ(*whole_of(kIou, blocks, drawn), direct_miou(kCounts, drawn));
  }
  // Not the mean of the parts' ratios.
  EXPECT_GT(std::abs(*whole_of(kIou, blocks, {0, 1}) -
                     (direct_miou(kCounts, {0}) + direct_miou(kCounts, {1})) / 2),
            1);
}

TEST(RatioOfSums, PartsAreAllOrNothing) {
  std::vector<Record> records = records_of(kCounts);
  records.erase(records.end() - 3);  // a class of the second block
  EXPECT_TRUE(only_one(measurements_at(records, 5, kToy)).blocks.empty())
      << "the counts are right, the sums are not";
  records = records_of(kCounts);
  records.resize(records.size() - 2);
  EXPECT_TRUE(only_one(measurements_at(records, 5, kToy)).blocks.empty());
}

TEST(RatioOfSums, ALaterMeasurementTakesThePlaceOfAnEarlier) {
  Counts other = kCounts;
  other[0][0][0] = 2;
  std::vector<Record> records = records_of(other);
  const std::vector<Record> again = records_of(kCounts);
  records.insert(records.end(), again.begin(), again.end());
  const Measurements measurements = measurements_at(records, 5, kToy);
  ASSERT_EQ(only_one(measurements).blocks.size(), 3);
  EXPECT_EQ(only_one(measurements).blocks[0].ratios[0].numerator, 8);
}

TEST(RatioOfSums, OfNothingIsNothing) {
  const std::vector<Block> blocks = {{.count = 1, .ratios = {{.numerator = 0, .denominator = 0}}}};
  EXPECT_EQ(whole_of(kIou, blocks, {0}), std::nullopt);
  EXPECT_EQ(whole_of(kIou, blocks, {}), std::nullopt);
}

TEST(Mean, OfLevelsMakesTheWhole) {
  const std::vector<Block> blocks = {{.value = 1, .count = 3},
                                     {.index = 1, .value = 2, .count = 1}};
  EXPECT_DOUBLE_EQ(*whole_of(tasks::kPerplexity, blocks, {0, 1}), std::exp(1.25));
  EXPECT_DOUBLE_EQ(*whole_of(tasks::kPerplexity, blocks, {1, 1}), std::exp(2.0));
}

TEST(Measurements, OfATaskThatDeclaresNothingAreNone) {
  EXPECT_TRUE(measurements_at(records_of(kCounts), 5, kNoMeasures).empty());
  EXPECT_TRUE(measurements_at(records_of(kCounts), 4, kToy).empty()) << "another step";
}

TEST(Measurements, ASourceThatIsNotKnownSaysNothingOfTraining) {
  std::vector<Record> records = records_of(kCounts);
  Record probe = records.front();
  probe.labels["source"] = std::string("probe");
  probe.labels["metric_scope"] = std::string("sequence");
  probe.labels["step"] = int64_t{4};
  records.insert(records.begin(), probe);
  EXPECT_EQ(measurements_at(records, 5, kToy).size(), 1)
      << "its scope of the metric must not count as the trained one";
}

}  // namespace
}  // namespace elliptical::measure
