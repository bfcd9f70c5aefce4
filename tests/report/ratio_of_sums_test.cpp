// SPDX-License-Identifier: MIT
//
// The bootstrap of a measure that is no mean of its parts: a toy segmentation of two classes, whose
// mIoU and replicates are computed here directly from pixels.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "elliptical/measure/labels.h"
#include "elliptical/report/comparison.h"
#include "tests/report/run_folders.h"

namespace elliptical::report::ratio_of_sums_test {
namespace {

constexpr measure::Measure kIou{.name = "mIoU",
                                .unit = "points",
                                .value_unit = "%",
                                .higher_is_better = true,
                                .margin = 0.05,
                                .whole = measure::Whole::kRatioOfSums,
                                .scale = 100};
constexpr std::array kNumbers = {measure::ComparedNumber{.name = "clean",
                                                         .place = "on clean pictures",
                                                         .measure = &kIou,
                                                         .metric = "miou",
                                                         .block_metric = "block_iou"}};
constexpr measure::TaskMeasures kToy{.task = "segment", .data = "pictures", .numbers = kNumbers};

constexpr size_t kBlocks = 12, kClasses = 2;
constexpr int64_t kPicturesOfBlock = 5;

/// Pixels of a block and class: in the intersection, in the union.
using Pixels = std::array<std::array<std::array<double, 2>, kClasses>, kBlocks>;

/// Blocks differ much in size, and `better` helps in some more than in others.
Pixels pixels_of(double better, double seed) {
  Pixels pixels;
  for (size_t block = 0; block < kBlocks; ++block) {
    for (size_t c = 0; c < kClasses; ++c) {
      const double both = 100.0 * static_cast<double>((block * block + 3 * c) % 11);
      const double share = 0.5 + 0.03 * static_cast<double>((5 * block + c) % 7) +
                           better * static_cast<double>(block % 3) + 0.001 * seed;
      pixels[block][c] = {std::floor(share * both), both};
    }
  }
  return pixels;
}

double miou(const Pixels& pixels, const std::vector<size_t>& drawn) {
  double sum = 0;
  for (size_t c = 0; c < kClasses; ++c) {
    double intersection = 0, both = 0;
    for (const size_t block : drawn) {
      intersection += pixels[block][c][0];
      both += pixels[block][c][1];
    }
    sum += intersection / both;
  }
  return 100 * sum / kClasses;
}

std::vector<size_t> all_blocks() {
  std::vector<size_t> all(kBlocks);
  for (size_t i = 0; i < kBlocks; ++i) all[i] = i;
  return all;
}

RunData run_of(const std::string& name, int64_t seed, const Pixels& pixels) {
  test::MadeRun made{.name = name, .seed = seed};
  made.task = "segment";
  RunData run = test::run_data(made);
  run.measures = &kToy;
  run.records.clear();
  const std::map<std::string, LabelValue> labels = {{"data", std::string("ade")},
                                                    {"perturbation", std::string("none")},
                                                    {"source", std::string("eval")},
                                                    {"split", std::string("test")},
                                                    {"step", made.last_step}};
  run.records.push_back({"miou", miou(pixels, all_blocks()), kBlocks * kPicturesOfBlock, labels});
  for (size_t block = 0; block < kBlocks; ++block) {
    for (size_t c = 0; c < kClasses; ++c) {
      auto of_class = labels;
      of_class["block"] = static_cast<int64_t>(block);
      of_class[measure::kClass] = static_cast<int64_t>(c);
      run.records.push_back(measure::ratio_record("block_iou", pixels[block][c][0],
                                                  pixels[block][c][1], kPicturesOfBlock, of_class));
    }
  }
  return run;
}

struct Toy {
  std::vector<Pixels> other, softmax;  ///< by seed
  std::vector<RunData> runs;
};

Toy make_toy() {
  Toy toy;
  for (const int64_t seed : {1, 2, 3}) {
    toy.other.push_back(pixels_of(0.02, static_cast<double>(seed * seed)));
    toy.softmax.push_back(pixels_of(0, static_cast<double>(2 * seed)));
    toy.runs.push_back(run_of("other", seed, toy.other.back()));
    toy.runs.push_back(run_of("softmax", seed, toy.softmax.back()));
  }
  return toy;
}

TEST(RatioOfSums, HasTheIntervalOfADirectComputation) {
  const Toy toy = make_toy();
  const ComparisonOptions options{.num_replicates = 2000};
  const Comparison comparison = compare_runs(toy.runs, options);
  ASSERT_EQ(comparison.columns.size(), 1);
  EXPECT_TRUE(std::none_of(comparison.problems.begin(), comparison.problems.end(),
                           [](const std::string& line) { return line.starts_with("intervals"); }))
      << "the parts were used";
  const Difference& difference = *test::row_of(comparison, "other").cells[0]->to_reference;

  const auto difference_on = [&](const std::vector<size_t>& drawn) {
    double sum = 0;
    for (size_t s = 0; s < 3; ++s) sum += miou(toy.other[s], drawn) - miou(toy.softmax[s], drawn);
    return sum / 3;
  };
  const double center = difference_on(all_blocks());
  EXPECT_NEAR(difference.percent, center, 1e-9);
  // Two methods, three seeds: what is left of each after method and seed means.
  std::vector<std::vector<std::optional<double>>> table;
  for (const auto& pixels : {toy.other, toy.softmax}) {
    auto& row = table.emplace_back();
    for (const Pixels& each : pixels) row.emplace_back(miou(each, all_blocks()));
  }
  const TrainingNoise noise = *training_noise(table);
  RandomStream random(RandomKey(options.seed).derive("clean").derive("other").derive("softmax"));
  std::vector<double> replicates;
  for (int64_t i = 0; i < options.num_replicates; ++i) {
    double replicate = center + noise.deviation * std::sqrt(2.0 / 3) *
                                    draw_student_t(random, static_cast<double>(noise.degrees));
    std::vector<size_t> drawn(kBlocks);
    for (size_t& block : drawn) block = random.below(kBlocks);
    replicates.push_back(replicate + difference_on(drawn) - center);
  }
  std::sort(replicates.begin(), replicates.end());
  EXPECT_NEAR(difference.interval->low, quantile(replicates, 0.025), 1e-9);
  EXPECT_NEAR(difference.interval->high, quantile(replicates, 0.975), 1e-9);
  // Parts of the data widen it: without them the interval is another.
  const Interval without = difference_interval(
      center, 3, noise, {}, options.num_replicates,
      RandomKey(options.seed).derive("clean").derive("other").derive("softmax"));
  EXPECT_GT(difference.interval->high - difference.interval->low,
            1.05 * (without.high - without.low));
}

TEST(RatioOfSums, IsToldInItsOwnWords) {
  const Comparison comparison = compare_runs(make_toy().runs);
  const std::vector<std::string> words = in_words(comparison);
  ASSERT_FALSE(words.empty());
  EXPECT_NE(words.front().find(" points "), std::string::npos) << words.front();
  EXPECT_NE(words.front().find("on clean pictures"), std::string::npos) << words.front();
}

}  // namespace
}  // namespace elliptical::report::ratio_of_sums_test
