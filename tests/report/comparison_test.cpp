// SPDX-License-Identifier: MIT
#include "elliptical/report/comparison.h"

#include <gtest/gtest.h>

#include <cmath>

#include "elliptical/tasks/classify_image_measures.h"
#include "elliptical/tasks/language_model_measures.h"
#include "tests/report/run_folders.h"
#include "tests/support/lines.h"

namespace elliptical::report {
namespace {

using test::has_line;
using test::Lines;
using test::measures_of;
using test::picture_run;
using test::row_of;

/// Clean log-perplexities of the seeds 1, 2, ... of a method.
struct Values {
  std::string name;
  std::vector<double> clean;
};

std::vector<RunData> make_runs(const std::vector<Values>& methods) {
  std::vector<RunData> runs;
  for (const Values& method : methods) {
    for (size_t s = 0; s < method.clean.size(); ++s) {
      runs.push_back(test::run_data({.name = method.name,
                                     .seed = static_cast<int64_t>(s) + 1,
                                     .clean = method.clean[s],
                                     .blocks = {0.1, -0.1, 0.05, -0.05}}));
    }
  }
  return runs;
}

const std::vector<Values> kMethods = {{"elliptical", {3.99, 4.08, 3.92}},
                                      {"matched constant", {3.991, 4.081, 3.921}},
                                      {"null twin", {3.992, 4.0805, 3.922}},
                                      {"softmax", {4.00, 4.10, 3.93}}};

std::vector<std::string> names_of(const Comparison& comparison) {
  std::vector<std::string> names;
  for (const MethodRow& row : comparison.rows) names.push_back(row.name);
  return names;
}

TEST(Comparison, OrdersRowsAndTakesMeansInLogarithms) {
  const Comparison comparison = compare_runs(make_runs(kMethods));
  EXPECT_EQ(comparison.problems, Lines());
  EXPECT_EQ(comparison.split, "test");
  EXPECT_EQ(measures_of(comparison), Lines({"clean"}));
  EXPECT_EQ(names_of(comparison),
            Lines({"softmax", "elliptical", "matched constant", "null twin"}));
  EXPECT_EQ(comparison.rows[0].role, Role::kReference);
  EXPECT_EQ(comparison.rows[1].role, Role::kMethod);
  EXPECT_EQ(comparison.rows[2].role, Role::kControl);

  const Cell& cell = *row_of(comparison, "elliptical").cells[0];
  EXPECT_NEAR(std::log(cell.mean), (3.99 + 4.08 + 3.92) / 3, 1e-12);
  EXPECT_NEAR(cell.to_reference->percent, 100 * std::expm1(-0.04 / 3), 1e-9);
  EXPECT_NEAR(cell.to_matched->percent, 100 * std::expm1(-0.001), 1e-9);
  EXPECT_EQ(cell.to_reference->num_seeds, 3);
  EXPECT_GT(cell.to_reference->interval->high, cell.to_reference->percent);
  EXPECT_LT(cell.to_reference->interval->low, cell.to_reference->percent);
  EXPECT_FALSE(row_of(comparison, "softmax").cells[0]->to_reference);
  EXPECT_FALSE(row_of(comparison, "matched constant").cells[0]->to_matched);
}

TEST(Comparison, SameRecordsSameIntervals) {
  const auto interval = [](uint64_t seed) {
    const Comparison comparison = compare_runs(make_runs(kMethods), {.seed = seed});
    return row_of(comparison, "elliptical").cells[0]->to_reference->interval->low;
  };
  EXPECT_EQ(interval(1), interval(1));
  EXPECT_NE(interval(1), interval(2));
}

TEST(Comparison, ReferenceCanBeChosen) {
  const Comparison comparison = compare_runs(make_runs(kMethods), {.reference = "elliptical"});
  EXPECT_EQ(comparison.rows[0].name, "elliptical");
  EXPECT_EQ(comparison.reference, "elliptical");
  const Comparison first = compare_runs(make_runs(kMethods), {.reference = "absent"});
  EXPECT_EQ(first.reference, "elliptical");
  EXPECT_EQ(first.problems,
            Lines({"reference: no method is called \"absent\", elliptical takes its "
                   "place (--reference NAME)"}));
}

TEST(Comparison, PairsTheSeedsThatBothHave) {
  const Comparison comparison =
      compare_runs(make_runs({{"elliptical", {3.9, 3.8}}, {"softmax", {4.0, 4.1, 9.0}}}));
  const Difference& difference = *row_of(comparison, "elliptical").cells[0]->to_reference;
  EXPECT_EQ(difference.num_seeds, 2);
  EXPECT_NEAR(difference.percent, 100 * std::expm1(-0.2), 1e-9);
  EXPECT_TRUE(has_line(comparison.problems,
                       {"elliptical: has no finished run with seed 3, others have (differences use "
                        "the seeds that both have)"}));
}

TEST(Comparison, OneSeedHasNoInterval) {
  const Comparison comparison =
      compare_runs(make_runs({{"elliptical", {3.9}}, {"softmax", {4.0}}}));
  EXPECT_FALSE(row_of(comparison, "elliptical").cells[0]->to_reference->interval);
  EXPECT_FALSE(row_of(comparison, "elliptical").cells[0]->deviation_percent);
  EXPECT_FALSE(comparison.columns[0].noise_percent);
  EXPECT_FALSE(comparison.has_intervals());
  EXPECT_EQ(in_words(comparison),
            Lines({"Nothing can be said with one seed about differences: two trainings of the same "
                   "model differ as well (--seeds 3 or more)."}));
}

/// A difference of that size with that interval.
Verdict verdict(double percent,
                double low,
                double high,
                const measure::Measure& measure = tasks::kPerplexity) {
  return verdict_of({.percent = percent, .num_seeds = 3, .interval = Interval{low, high}}, measure);
}

TEST(Verdict, NothingIsOutsideTheNoiseThatCanNotMatter) {
  for (const measure::Measure* measure :
       {&tasks::kPerplexity, &tasks::kAccuracy, &tasks::kCorruptionError}) {
    EXPECT_EQ(measure->margin, 0.05);
    EXPECT_EQ(verdict(0.001, 0.0005, 0.0015, *measure), Verdict::kEqual);
    EXPECT_EQ(verdict(-0.03, -0.05, 0.05, *measure), Verdict::kEqual);
    EXPECT_EQ(verdict(0.04, 0.01, 0.07, *measure), Verdict::kSmall);
    EXPECT_EQ(verdict(-0.06, -0.09, -0.03, *measure), Verdict::kOutside);
    EXPECT_EQ(verdict(0.06, -0.03, 0.15, *measure), Verdict::kWithin);
    EXPECT_EQ(verdict(0.0, -0.06, 0.06, *measure), Verdict::kWithin);
    EXPECT_EQ(verdict_of({.percent = 5}, *measure), Verdict::kOneSeed);
  }
}

TEST(InWords, EqualIsWhatLiesWithinTheMargin) {
  // Trainings so short that their noise is next to nothing: each difference excludes zero.
  const Comparison comparison =
      compare_runs(make_runs({{"elliptical", {4.0001, 4.1001, 3.9001}},
                              {"matched constant", {4.00005, 4.10005, 3.90005}},
                              {"null twin", {4.00002, 4.10002, 3.90002}},
                              {"softmax", {4.0, 4.1, 3.9}}}));
  const Difference& difference = *row_of(comparison, "elliptical").cells[0]->to_reference;
  ASSERT_TRUE(difference.interval->excludes_zero());
  const Lines words = in_words(comparison);
  EXPECT_TRUE(has_line(
      words, {"elliptical equals softmax on clean text to 0.05 % (", " to +0.01 %, 3 seeds)."}));
  EXPECT_TRUE(has_line(words, {"Controls that make no difference that matters against softmax on "
                               "clean text: matched constant."}));
  for (const std::string& line : words) {
    EXPECT_EQ(line.find("outside the noise"), line.npos) << line;
  }
}

TEST(InWords, OfSmokeRunsThereIsABannerOnly) {
  std::vector<RunData> runs = make_runs(kMethods);
  EXPECT_FALSE(compare_runs(runs).is_smoke);
  runs[1].records[0].labels["smoke"] = true;
  EXPECT_TRUE(compare_runs(runs).is_smoke) << "a record says so";
  runs = make_runs(kMethods);
  runs[1].config = "smoke = true\n" + runs[1].config;
  const Comparison comparison = compare_runs(runs);
  EXPECT_TRUE(comparison.is_smoke) << "the configuration says so";
  EXPECT_EQ(in_words(comparison),
            Lines({"These are smoke runs, shrunk by --smoke to end within seconds: their numbers "
                   "mean nothing."}));
}

TEST(Comparison, SwappedTextWholeAndSplit) {
  std::vector<RunData> runs;
  for (const int64_t seed : {1, 2}) {
    runs.push_back(test::run_data({.name = "elliptical", .seed = seed, .swapped = 4.3}));
    runs.push_back(test::run_data({.name = "softmax", .seed = seed, .swapped = 4.4}));
  }
  const Comparison comparison = compare_runs(runs);
  EXPECT_EQ(measures_of(comparison),
            Lines({"clean", "swapped", "clean targets, swapped text", "swapped targets"}));
  ASSERT_EQ(comparison.damages.size(), 1);
  EXPECT_EQ(comparison.damages.front().strength, 0.025);
  const auto& cells = row_of(comparison, "elliptical").cells;
  EXPECT_NEAR(std::log(cells[1]->mean), 4.3, 1e-12);
  EXPECT_NEAR(std::log(cells[2]->mean), 4.2, 1e-12);
  EXPECT_NEAR(std::log(cells[3]->mean), 7.3, 1e-12);
  const Lines words = in_words(comparison);
  EXPECT_TRUE(has_line(words, {"elliptical is 9.52 % better than softmax on clean targets in "
                               "swapped text, outside the noise ("}));
  EXPECT_TRUE(has_line(words, {"elliptical is 9.52 % better than softmax on swapped targets, "}));
  EXPECT_EQ(measures_of(compare_runs(runs, {.damages = {{"word_swap", {.strength = 0.1}}}})),
            Lines({"clean"}));
}

TEST(Comparison, AccuraciesAreComparedInPointsAndMoreIsBetter) {
  std::vector<RunData> runs;
  for (int64_t seed = 1; seed <= 3; ++seed) {
    const double shared = 0.5 * static_cast<double>(seed);
    const double noise = 0.02 * static_cast<double>(seed % 2);
    runs.push_back(picture_run("softmax", seed, 70 + shared, 40 + shared));
    runs.push_back(picture_run("elliptical", seed, 72 + shared + noise, 39 + shared - noise));
    runs.push_back(picture_run("zero", seed, 0, 0));
  }
  const Comparison comparison = compare_runs(runs);
  EXPECT_EQ(measures_of(comparison), Lines({"clean", "corrupted"}));
  EXPECT_EQ(std::string(comparison.measures->main().name), "accuracy");
  ASSERT_EQ(comparison.damages.size(), 1);
  EXPECT_EQ(comparison.damages.front().kind, "fog");
  EXPECT_EQ(comparison.damages.front().strength, 3);
  EXPECT_EQ(comparison.unit, "images");
  const MethodRow& elliptical = comparison.rows[1];
  ASSERT_EQ(elliptical.name, "elliptical");
  EXPECT_EQ(elliptical.units_per_second, 250.0);
  // Of 70.5, 71, 71.5 against 72.52, 73, 73.52: arithmetic means, differences in points.
  EXPECT_NEAR(comparison.rows[0].cells[0]->mean, 71, 1e-12);
  EXPECT_NEAR(elliptical.cells[0]->to_reference->percent, 2 + 0.04 / 3, 1e-12);
  EXPECT_NEAR(elliptical.cells[1]->to_reference->percent, -1 - 0.04 / 3, 1e-12);
  EXPECT_TRUE(comparison.rows[2].cells[0]) << "an accuracy of 0 is a number like others";
  const Lines words = in_words(comparison);
  EXPECT_TRUE(has_line(words, {"elliptical is 2.01 points better than softmax on clean pictures"}));
  EXPECT_TRUE(
      has_line(words, {"elliptical is 1.01 points worse than softmax on corrupted pictures"}));
}

TEST(Comparison, AnAverageOfWeightsIsNotComparedWithTrainedOnes) {
  std::vector<RunData> runs = {picture_run("softmax", 1, 70, 40), picture_run("other", 1, 71, 41)};
  for (Record& record : runs[1].records) record.labels["weights"] = std::string("ema");
  EXPECT_TRUE(has_line(compare_runs(runs).problems,
                       {"runs/other-seed-1: is not measured on clean data as the others are"}));
}

TEST(Comparison, LikeIsComparedWithLike) {
  // One run has only been measured on the validation text.
  std::vector<RunData> runs = make_runs(kMethods);
  runs.push_back(test::run_data({.name = "other", .split = "valid"}));
  const Comparison comparison = compare_runs(runs);
  EXPECT_FALSE(row_of(comparison, "other").cells[0]);
  EXPECT_TRUE(has_line(comparison.problems,
                       {"runs/other-seed-1: is not measured on clean data as the others are "
                        "(elliptical eval runs/other-seed-1 --split test --set blocks=50)"}));
  EXPECT_EQ(compare_runs(make_runs(kMethods), {.split = "valid"}).split, "valid");
}

TEST(Comparison, ValidationOfTrainingIsUsedWhereNothingElseIs) {
  std::vector<RunData> runs = make_runs(kMethods);
  for (RunData& run : runs) run.records.resize(1);
  const Comparison comparison = compare_runs(runs);
  EXPECT_EQ(comparison.split, "valid");
  EXPECT_NEAR(std::log(row_of(comparison, "softmax").cells[0]->values[0]), 4.1, 1e-12);
  EXPECT_TRUE(has_line(comparison.problems, {"intervals: some cover the noise of training only"}));
}

TEST(Comparison, LaterRecordsAndWholeBlocksCount) {
  std::vector<RunData> runs = make_runs({{"elliptical", {3.9, 3.8}}, {"softmax", {4.0, 4.1}}});
  const Comparison before = compare_runs(runs);
  // An evaluation that was killed while it wrote its blocks, then done again.
  const std::vector<Record> whole = runs[0].records;
  runs[0].records.resize(whole.size() - 2);
  EXPECT_TRUE(has_line(compare_runs(runs).problems, {"intervals: "}));
  runs[0].records.insert(runs[0].records.end(), whole.begin() + 1, whole.end());
  const Comparison after = compare_runs(runs);
  EXPECT_FALSE(has_line(after.problems, {"intervals: "}));
  EXPECT_EQ(after.rows[1].cells[0]->to_reference->interval->low,
            before.rows[1].cells[0]->to_reference->interval->low);
}

TEST(Comparison, NamesWhatDoesNotBelongTogether) {
  std::vector<RunData> runs = make_runs(kMethods);
  runs.push_back(test::run_data({.name = "a", .task = "pictures"}));
  runs.push_back(test::run_data({.name = "b", .data = "enwik8"}));
  runs.push_back(test::run_data({.name = "c", .last_step = 40}));
  runs.push_back(test::run_data({.name = "softmax", .seed = 4, .steps = 50, .last_step = 50}));
  runs.push_back(test::run_data({.name = "softmax", .seed = 3}));
  runs.push_back(
      test::run_data({.name = "d", .more_config = "[optimizer]\nlearning_rate = 3.0\n"}));
  const Comparison comparison = compare_runs(runs);
  EXPECT_EQ(comparison.task, "language_model");
  EXPECT_EQ(comparison.data, "text");
  EXPECT_EQ(row_of(comparison, "softmax").seeds.size(), 3);
  for (const char* line :
       {"runs/a-seed-1: must be language_model on text like the others, is pictures on text (left "
        "out; compare it in a folder of its own)",
        "runs/b-seed-1: must be language_model on text like the others, is language_model on "
        "enwik8",
        "runs/c-seed-1: must be finished and measured after step 100, its last records are of step "
        "40 (left out; elliptical resume runs/c-seed-1)",
        "runs/softmax-seed-4: runs of softmax must have equally many steps, has 50 instead of 100 "
        "(left out; train it again with --set train.steps=100",
        "runs/softmax-seed-3: there is another run of softmax with seed 3",
        "d: must differ from softmax in its attention only, differs in "
        "optimizer.learning_rate: nothing and 3.0 (their difference is not one of attention "
        "alone)"}) {
    EXPECT_TRUE(has_line(comparison.problems, {line}));
  }
}

TEST(Comparison, RunsOfOneNameHaveOneRecipe) {
  std::vector<RunData> runs = make_runs({{"softmax", {4.0, 4.1}}, {"isotropic", {4.0, 4.1}}});
  runs.push_back(test::run_data(
      {.name = "softmax", .seed = 3, .more_config = "[schedule]\nwarmup_steps = 7\n"}));
  // The value of a matched constant is its own in each run.
  for (const int64_t seed : {1, 2}) {
    runs.push_back(test::run_data({.name = "matched constant",
                                   .seed = seed,
                                   .more_config = "[task.model.attention.metric]\nvalue = 0." +
                                                  std::to_string(seed) + "\n"}));
  }
  const Comparison comparison = compare_runs(runs);
  EXPECT_TRUE(has_line(comparison.problems,
                       {"softmax: runs of one name must have the same recipe, "
                        "runs/softmax-seed-1 and runs/softmax-seed-3 differ in "
                        "schedule.warmup_steps: nothing and 7 (give one of them another name: "
                        "--set name=...)"}));
  EXPECT_FALSE(has_line(comparison.problems, {"matched constant: runs of one name"}));
}

TEST(Comparison, MissingControlsAreNamed) {
  const std::vector<RunData> runs =
      make_runs({{"elliptical", {3.9, 3.8}}, {"softmax", {4.0, 4.1}}});
  EXPECT_EQ(compare_runs(runs).problems,
            Lines({"matched constant: is missing, without it a gain may be that of a temperature "
                   "(elliptical compare RECIPE --run DIR trains it)",
                   "null twin: is missing, without it the floor is unknown (elliptical compare "
                   "RECIPE --run DIR trains it)"}));
  // Of one seed nothing has an interval that a null twin could question.
  EXPECT_EQ(compare_runs(make_runs({{"elliptical", {3.9}}, {"softmax", {4.0}}})).problems.size(),
            1U);
  EXPECT_EQ(compare_runs(make_runs({{"softmax", {4.0, 4.1}}})).problems, Lines());
}

TEST(Comparison, PerplexityThatIsNotFinite) {
  std::vector<RunData> runs = make_runs(kMethods);
  runs[0].records[1].value = INFINITY;
  const Comparison comparison = compare_runs(runs);
  EXPECT_EQ(row_of(comparison, "elliptical").cells[0]->to_reference->num_seeds, 2);
  EXPECT_TRUE(
      has_line(comparison.problems, {"runs/elliptical-seed-1: perplexity must be finite, is not"}));
  EXPECT_TRUE(comparison.has_non_finite);
  EXPECT_FALSE(compare_runs(make_runs(kMethods)).has_non_finite);
}

TEST(InWords, MethodsControlsAndTheFloor) {
  const Lines words = in_words(compare_runs(make_runs(kMethods)));
  EXPECT_TRUE(has_line(words, {"elliptical is 1.32 % better than softmax on clean text, outside "
                               "the noise (-",
                               " %, 3 seeds)."}));
  EXPECT_TRUE(has_line(words, {"elliptical is 0.10 % better than matched constant on clean text, "
                               "within the noise (-"}));
  EXPECT_TRUE(has_line(words, {"What elliptical gains on clean text can not be told apart from "
                               "what a constant temperature gains."}));
  EXPECT_TRUE(has_line(words, {"Controls outside the noise against softmax on clean text: matched "
                               "constant (-"}));
  EXPECT_TRUE(has_line(words, {"The null twin, the same model to the eye, differs from matched "
                               "constant by +0.05 % on clean text: the floor"}));
  EXPECT_FALSE(has_line(words, {"The null twin is outside"}));
  EXPECT_TRUE(has_line(words, {"One training varies by 0.", " % on clean text (standard"}));
}

TEST(PercentText, HasASignUnlessItIsZero) {
  EXPECT_EQ(percent_text(0.333), "+0.33");
  EXPECT_EQ(percent_text(-1.0251), "-1.03");
  EXPECT_EQ(percent_text(-0.001), "0.00");
  EXPECT_EQ(percent_text(0.001), "0.00");
}

TEST(InWords, ATwinOutsideTheNoiseIsAWarning) {
  std::vector<Values> methods = kMethods;
  for (double& value : methods[2].clean) value += 0.1;
  EXPECT_TRUE(has_line(
      in_words(compare_runs(make_runs(methods))),
      {"The null twin is outside the noise on clean text (", "these intervals are too narrow"}));
}

TEST(InWords, NamesMethodsThatSeeTheFuture) {
  std::vector<RunData> runs = make_runs(kMethods);
  runs.push_back(test::run_data({.name = "released", .leaks_future = true}));
  const Comparison comparison = compare_runs(runs);
  EXPECT_TRUE(row_of(comparison, "released").leaks_future);
  EXPECT_FALSE(row_of(comparison, "elliptical").leaks_future);
  EXPECT_TRUE(has_line(in_words(comparison), {"released sees future tokens through its metric"}));
}

TEST(InWords, NothingToCompare) {
  EXPECT_TRUE(has_line(in_words(compare_runs({})), {"There is nothing", "no finished run"}));
  EXPECT_TRUE(has_line(in_words(compare_runs(make_runs({{"softmax", {4.0}}}))),
                       {"There is nothing to compare softmax with"}));
  EXPECT_TRUE(has_line(in_words(compare_runs({test::run_data({.name = "softmax", .seed = 1}),
                                              test::run_data({.name = "other", .seed = 2})})),
                       {"There is nothing", "no two methods have a seed in common"}));
}

}  // namespace
}  // namespace elliptical::report
