// SPDX-License-Identifier: MIT
//
// What is compared with what: attacks, corruption errors, damage in several circumstances.
#include <gtest/gtest.h>

#include <array>

#include "elliptical/measure/labels.h"
#include "elliptical/report/comparison.h"
#include "elliptical/tasks/language_model_measures.h"
#include "tests/report/run_folders.h"
#include "tests/support/lines.h"

namespace elliptical::report {
namespace {

using test::add_attack;
using test::add_measurement;
using test::has_line;
using test::Lines;
using test::measures_of;
using test::picture_run;
using test::row_of;

constexpr double kPixel = 1.0 / 255;

/// Two methods with two seeds each; what `change` does depends on what is better, 0 or 2.
template <class Change>
std::vector<RunData> two_methods(Change change) {
  std::vector<RunData> runs;
  for (const int64_t seed : {1, 2}) {
    for (const char* name : {"other", "softmax"}) {
      const double better =
          (std::string(name) == "other" ? 2 : 0) + 0.3 * static_cast<double>(seed);
      runs.push_back(picture_run(name, seed, 70 + better, 40 + better));
      change(runs.back(), better);
    }
  }
  return runs;
}

TEST(ComparisonColumns, EachAttackIsOneInTheOrderOfTheRecords) {
  const std::vector<RunData> runs = two_methods([](RunData& run, double better) {
    add_attack(run, "pgd", 2 * kPixel, 20 + better);
    add_attack(run, "pgd", kPixel, 30 - better);
    add_attack(run, "fgsm", 0.01, 25 + better);
  });
  const Comparison comparison = compare_runs(runs);
  EXPECT_EQ(comparison.problems, Lines());
  EXPECT_EQ(measures_of(comparison),
            Lines({"clean", "corrupted", "pgd, eps 2/255", "pgd, eps 1/255", "fgsm, eps 0.01"}));
  EXPECT_EQ(comparison.columns[2].condition, measure::Condition::kAttacked);
  EXPECT_EQ(comparison.columns[2].num_pictures, 50) << "of 100 that clean accuracy is of";
  const auto& cells = row_of(comparison, "other").cells;
  EXPECT_EQ(cells[2]->values, (std::vector<double>{22.3, 22.6}));
  EXPECT_NEAR(cells[2]->to_reference->percent, 2, 1e-12);
  EXPECT_NEAR(cells[3]->to_reference->percent, -2, 1e-12);
  EXPECT_TRUE(cells[2]->to_reference->interval);
  EXPECT_TRUE(comparison.columns[4].noise_percent);
  const Lines words = in_words(comparison);
  EXPECT_TRUE(has_line(words, {"other is 2.00 points better than softmax under pgd (eps 2/255), "
                               "outside the noise ("}));
  EXPECT_TRUE(has_line(words, {"other is 2.00 points worse than softmax under pgd (eps 1/255), "}));
  EXPECT_TRUE(has_line(words, {"One training varies by ", " points under fgsm (eps 0.01) ("}));
}

TEST(ComparisonColumns, IntervalsOfAttacksCoverPictures) {
  const auto width = [](double amplitude) {
    std::vector<RunData> runs = two_methods(
        [](RunData& run, double better) { add_attack(run, "pgd", kPixel, 30 + better); });
    for (Record& record : runs[0].records) {
      if (record.metric != "block_robust_accuracy") continue;
      record.value +=
          std::get<int64_t>(record.labels.at("block")) % 2 == 0 ? amplitude : -amplitude;
    }
    const Interval interval = *row_of(compare_runs(runs), "other").cells[2]->to_reference->interval;
    return interval.high - interval.low;
  };
  EXPECT_GT(width(10), 2 * width(1));
}

TEST(ComparisonColumns, WhatIsUnusualAboutAnAttackIsInItsName) {
  const std::vector<RunData> runs = two_methods([](RunData& run, double better) {
    add_attack(run, "pgd", kPixel, 30 + better);
    add_attack(run, "pgd", kPixel, 30 + better, {{"attack_options", std::string("steps=7")}});
    add_attack(run, "pgd", kPixel, 31 + better, {{"metric_gradient", std::string("detached")}});
    add_attack(run, "pgd", kPixel, 32 + better, {{"attack_seed", int64_t{2}}});
    add_attack(
        run, "pgd", kPixel, 33 + better,
        {{"profile", std::string("published")}, {"metric_gradient", std::string("detached")}});
    add_attack(run, "pgd", kPixel, 34 + better, {}, 100);
    // None of these is compared: other data, another part of them, damaged ones, other weights.
    add_attack(run, "pgd", kPixel, 0, {{"data", std::string("elsewhere")}});
    add_attack(run, "pgd", kPixel, 0, {{"split", std::string("valid")}});
    add_attack(run, "pgd", kPixel, 0, {{"perturbation", std::string("corruption")}});
    add_attack(run, "pgd", kPixel, 0, {{"weights", std::string("ema")}});
  });
  const Comparison comparison = compare_runs(runs);
  EXPECT_EQ(measures_of(comparison),
            Lines({"clean", "corrupted", "pgd, eps 1/255", "pgd, eps 1/255, steps=7",
                   "pgd, eps 1/255, metric detached", "pgd, eps 1/255, seed 2",
                   "pgd, eps 1/255, published", "pgd, eps 1/255, 100 pictures"}));
  EXPECT_EQ(comparison.columns.back().num_pictures, 0) << "all of them";
}

/// A run of text measured by two methods, which give perplexities 2 apart.
RunData run_by_two_methods(const std::string& name, int64_t seed) {
  test::MadeRun made{.name = name, .seed = seed};
  RunData run = test::run_data(made);
  run.records.clear();
  for (const auto& [method, value] : {std::pair("block", 40.0), std::pair("sliding", 38.0)}) {
    for (const char* perturbation : {"none", "word_swap"}) {
      const bool is_sliding = std::string(method) == "sliding";
      const bool is_clean = std::string(perturbation) == "none";
      std::map<std::string, LabelValue> labels = {{"method", std::string(method)},
                                                  {"window", int64_t{16}},
                                                  {"perturbation", std::string(perturbation)}};
      labels[is_sliding ? "stride" : "columns"] = int64_t{is_sliding ? 1 : 10};
      if (!is_clean) labels["swap_rate"] = 0.025;
      add_measurement(run, "perplexity", value + (is_clean ? 0 : 10), labels);
    }
  }
  return run;
}

TEST(ComparisonColumns, MethodsOfReadingTextNeverMix) {
  std::vector<RunData> runs;
  for (const int64_t seed : {1, 2}) {
    for (const char* name : {"other", "softmax"}) runs.push_back(run_by_two_methods(name, seed));
  }
  Comparison comparison = compare_runs(runs);
  EXPECT_EQ(reading_text(comparison.reading), "by blocks of 16 tokens in 10 columns");
  EXPECT_EQ(row_of(comparison, "other").cells[0]->values, (std::vector<double>{40, 40}));
  EXPECT_EQ(row_of(comparison, "other").cells[1]->values, (std::vector<double>{50, 50}));

  comparison = compare_runs(runs, {.method = "sliding"});
  EXPECT_EQ(reading_text(comparison.reading), "by a sliding window of 16 tokens, stride 1");
  EXPECT_EQ(row_of(comparison, "other").cells[0]->values, (std::vector<double>{38, 38}));
  EXPECT_EQ(row_of(comparison, "other").cells[1]->values, (std::vector<double>{48, 48}));

  // Damaged text that was read in another way than clean text is no column beside it.
  for (RunData& run : runs) {
    std::erase_if(run.records, [](const Record& record) {
      return record.labels.at("perturbation") == LabelValue(std::string("word_swap")) &&
             record.labels.at("method") == LabelValue(std::string("block"));
    });
  }
  EXPECT_EQ(measures_of(compare_runs(runs, {.method = "block"})), Lines({"clean"}));

  // A run that lacks the method is named with the command that makes up for it.
  std::erase_if(runs[0].records, [](const Record& record) {
    return record.labels.at("method") == LabelValue(std::string("sliding"));
  });
  EXPECT_TRUE(has_line(compare_runs(runs, {.method = "sliding"}).problems,
                       {"runs/other-seed-1: is not measured on clean data as the others are "
                        "(elliptical eval runs/other-seed-1 --split test --method sliding"}));
}

TEST(ComparisonColumns, AnAttackOnFewerPicturesThanTheFirstSaysSo) {
  const std::vector<RunData> runs = two_methods([](RunData& run, double better) {
    add_attack(run, "pgd", kPixel, 30 + better, {}, 50);
    add_attack(run, "auto-attack", kPixel, 20 + better, {}, 10);
    add_attack(run, "fgsm", kPixel, 32 + better, {}, 50);
  });
  EXPECT_EQ(measures_of(compare_runs(runs)),
            Lines({"clean", "corrupted", "pgd, eps 1/255", "auto-attack, eps 1/255, 10 pictures",
                   "fgsm, eps 1/255"}));
}

TEST(ComparisonColumns, ARunThatLacksAnAttackIsNamedWithTheCommand) {
  std::vector<RunData> runs = two_methods([](RunData& run, double better) {
    if (run.name == "other" && run.seed == 2) return;
    add_attack(run, "pgd", kPixel, 30 + better,
               {{"attack_options", std::string("steps=7 step_ratio=0.5")},
                {"metric_gradient", std::string("detached")}});
  });
  runs[0].folder = "my runs/other-seed-1";
  add_attack(runs[0], "fgsm", kPixel, 30);  // which no other method has
  const Comparison comparison = compare_runs(runs);
  ASSERT_EQ(comparison.columns.size(), 3);
  EXPECT_EQ(
      comparison.problems,
      Lines({"attacks: only other is attacked by fgsm, eps 1/255 (left out; for the others: "
             "elliptical attack RUN --attack fgsm --eps 1/255 --split test --eval-set "
             "max_pictures=50 --eval-set blocks=50)",
             "runs/other-seed-2: is not attacked by pgd, eps 1/255, steps=7 step_ratio=0.5, metric "
             "detached as the others are (elliptical attack runs/other-seed-2 --attack pgd --eps "
             "1/255 --metric-gradient detached --set pgd.steps=7 --set pgd.step_ratio=0.5 --split "
             "test --eval-set max_pictures=50 --eval-set blocks=50)"}));
  EXPECT_EQ(row_of(comparison, "other").cells[2]->to_reference->num_seeds, 1);
}

// What takes nothing from a number is no problem, and is told once for all runs.
TEST(ComparisonColumns, A2WhatAnAttackRemarksIsToldBesideItsNumber) {
  const Comparison comparison = compare_runs(two_methods([](RunData& run, double better) {
    add_attack(run, "auto-attack", kPixel, 30 + better, {{"flag_few_classes", true}});
  }));
  EXPECT_EQ(comparison.problems, Lines());
  EXPECT_EQ(comparison.remarks,
            Lines({"auto-attack, eps 1/255: there are fewer classes than apgd-t has targets, it "
                   "led to each of them: flag_few_classes (nothing is lost)"}));
}

TEST(ComparisonColumns, ARunThatIsReadOtherwiseIsToldHow) {
  std::vector<RunData> runs;
  for (const char* name : {"other", "softmax"}) {
    runs.push_back(test::run_data({.name = name}));
    for (Record& record : runs.back().records) {
      record.labels["method"] = std::string("block");
      record.labels["columns"] = int64_t{4};
      record.labels["window"] = int64_t{32};
    }
  }
  runs[1].config = "[task.model]\nwindow = 32\n[train]\nsteps = 100\n";
  runs[0].config = "[task.model]\nwindow = 64\n[train]\nsteps = 100\n";
  std::erase_if(runs[0].records, [](const Record& record) {
    return measure::source_of(record) == measure::Source::kEvaluation;
  });
  EXPECT_TRUE(has_line(compare_runs(runs, {.split = "test"}).problems,
                       {"runs/other-seed-1: is not measured on clean data as the others are",
                        "(elliptical eval runs/other-seed-1 --split test --set columns=4 --set "
                        "window=32 --set blocks=50)"}));
}

TEST(ComparisonColumns, A2WhatAnAttackDoubtsIsToldBesideItsNumber) {
  const std::vector<RunData> runs = two_methods([](RunData& run, double better) {
    const bool is_random = run.name == "other" && run.seed == 1;
    add_attack(run, "auto-attack", kPixel, 30 + better,
               {{"flag_randomised", is_random}, {"flag_zero_gradients", false}});
  });
  const Comparison comparison = compare_runs(runs);
  ASSERT_EQ(comparison.columns.size(), 3);
  EXPECT_EQ(comparison.problems,
            Lines({"runs/other-seed-1: accuracy under auto-attack, eps 1/255 may be too high, its "
                   "answers differ between passes over the same picture: flag_randomised "
                   "(attack it with --attack auto-attack --set auto-attack.version=rand)"}));
}

TEST(ComparisonColumns, AttacksWithoutParts) {
  std::vector<RunData> runs =
      two_methods([](RunData& run, double better) { add_attack(run, "pgd", kPixel, 30 + better); });
  std::erase_if(runs[1].records,
                [](const Record& record) { return record.metric == "block_robust_accuracy"; });
  EXPECT_TRUE(
      has_line(compare_runs(runs).problems, {"intervals: some cover the noise of training only",
                                             "(attack again with --eval-set blocks=50)"}));
}

TEST(ComparisonColumns, AttacksAloneAreCompared) {
  std::vector<RunData> runs = two_methods([](RunData& run, double better) {
    run.records.clear();
    add_attack(run, "pgd", kPixel, 30 + better, {{"split", std::string("valid")}});
  });
  const Comparison comparison = compare_runs(runs);
  EXPECT_EQ(comparison.split, "valid");
  EXPECT_EQ(measures_of(comparison), Lines({"pgd, eps 1/255"}));
  EXPECT_EQ(std::string(comparison.measures->main().name), "accuracy");
  EXPECT_EQ(comparison.columns[0].num_pictures, 50);
}

TEST(ComparisonColumns, ThereIsABoundOnThem) {
  const Comparison comparison = compare_runs(two_methods([](RunData& run, double better) {
    for (int steps = 1; steps <= 30; ++steps) {
      add_attack(run, "pgd", steps * kPixel, 30 + better);
    }
  }));
  EXPECT_EQ(comparison.columns.size(), 2 + kMaxAttackColumns);
  EXPECT_TRUE(has_line(comparison.problems, {"attacks: of 30 the first 24 are compared"}));
}

TEST(ComparisonColumns, OfCorruptionErrorsLessIsBetter) {
  const Comparison comparison = compare_runs(two_methods([](RunData& run, double better) {
    for (Record& record : run.records) {
      if (!record.labels.contains("corruption")) continue;
      record.labels["corruption"] = std::string("main");
      record.labels["severity"] = int64_t{0};
    }
    add_measurement(run, "mce", 80 - better,
                    {{"perturbation", std::string("corruption")},
                     {"corruption", std::string("main")},
                     {"severity", int64_t{0}}});
  }));
  EXPECT_EQ(comparison.problems, Lines());
  EXPECT_EQ(measures_of(comparison), Lines({"clean", "corrupted", "mCE"}));
  EXPECT_TRUE(comparison.columns[1].measure->higher_is_better);
  EXPECT_FALSE(comparison.columns[2].measure->higher_is_better);
  EXPECT_EQ(std::string(comparison.measures->main().name), "accuracy");
  EXPECT_NEAR(row_of(comparison, "other").cells[2]->to_reference->percent, -2, 1e-12);
  EXPECT_TRUE(has_line(in_words(comparison),
                       {"other is 2.00 points better than softmax in mCE, outside the noise (-"}));
}

// A task that knows two kinds of damage.
constexpr std::array kTwoDamages = {
    tasks::kLanguageModelPerturbations[0],
    measure::Perturbation{.name = "shuffle",
                          .damaged = "shuffled",
                          .strength = {.flag = "shuffle",
                                       .option = "shuffle_rate",
                                       .label = "shuffle_rate",
                                       .kind = measure::Parameter::Kind::kNumber,
                                       .usual = "0.5",
                                       .high = 1,
                                       .help = "",
                                       .eval_help = ""},
                          .details = {},
                          .words = tasks::word_swap_words}};
constexpr std::array kThreeNumbers = {
    tasks::kLanguageModelNumbers[0], tasks::kLanguageModelNumbers[1],
    measure::ComparedNumber{.name = "shuffled",
                            .place = "on shuffled text",
                            .measure = &tasks::kPerplexity,
                            .condition = measure::Condition::kDamaged,
                            .perturbation = "shuffle",
                            .metric = "perplexity",
                            .block_metric = "block_nll",
                            .targets = "all"}};
constexpr measure::TaskMeasures kToy{.task = "language_model",
                                     .data = "text",
                                     .numbers = kThreeNumbers,
                                     .perturbations = kTwoDamages};

TEST(ComparisonColumns, EachPerturbationHasItsOwn) {
  std::vector<RunData> runs;
  for (const char* name : {"other", "softmax"}) {
    runs.push_back(test::run_data({.name = name, .swapped = 5}));
    Record shuffled = runs.back().records.back();
    shuffled.metric = "perplexity";
    shuffled.labels.erase("swap_rate");
    shuffled.labels["perturbation"] = std::string("shuffle");
    shuffled.labels["shuffle_rate"] = 0.5;
    runs.back().records.push_back(shuffled);
    runs.back().measures = &kToy;
  }
  Comparison comparison = compare_runs(runs);
  EXPECT_EQ(measures_of(comparison), Lines({"clean", "swapped", "shuffled"}));
  EXPECT_EQ(comparison.columns[2].perturbation, "shuffle");
  ASSERT_EQ(comparison.damages.size(), 2U);
  EXPECT_EQ(comparison.damages[0].strength, 0.025);
  EXPECT_EQ(comparison.damages[1].strength, 0.5);
  EXPECT_EQ(comparison.damaged(), "swapped") << "that of charts of pairs";
  comparison = compare_runs(runs, {.damages = {{"shuffle", {.strength = 0.1}}}});
  EXPECT_EQ(measures_of(comparison), Lines({"clean", "swapped"}));
}

/// Labels of pictures that have all classes alike.
std::map<std::string, LabelValue> balanced(std::map<std::string, LabelValue> labels) {
  labels.insert({{"max_pictures", int64_t{50}},
                 {"subset", std::string("balanced")},
                 {"pictures_total", int64_t{100}},
                 {"classes", int64_t{10}}});
  return labels;
}

// Earlier versions took the first pictures, which in class folders are of the first classes.
TEST(ComparisonColumns, FirstPicturesAreNotMixedWithBalancedOnes) {
  const std::map<std::string, LabelValue> fog = {{"perturbation", std::string("corruption")},
                                                 {"corruption", std::string("fog")},
                                                 {"severity", int64_t{3}}};
  std::vector<RunData> runs = two_methods([&](RunData& run, double better) {
    auto first = fog;
    first["max_pictures"] = int64_t{50};
    add_measurement(run, "accuracy", 10, first, 50);
    add_attack(run, "pgd", kPixel, 20);
    if (run.name == "other") return;
    add_measurement(run, "accuracy", 60 + better, balanced(fog), 50);
    add_attack(run, "pgd", kPixel, 50 + better, balanced({}));
  });
  const ComparisonOptions fifty{.damages = {{"corruption", {.kind = "fog"}}}, .num_pictures = 50};
  Comparison comparison = compare_runs(runs, fifty);
  EXPECT_EQ(row_of(comparison, "softmax").cells[1]->values, (std::vector<double>{10, 10}));
  EXPECT_EQ(comparison.columns[1].num_classes, 0);
  for (RunData& run : runs) {
    if (run.name != "other") continue;
    add_measurement(run, "accuracy", 70, balanced(fog), 50);
    add_attack(run, "pgd", kPixel, 60, balanced({}));
  }
  comparison = compare_runs(runs, fifty);
  EXPECT_EQ(measures_of(comparison), Lines({"clean", "corrupted", "pgd, eps 1/255"}));
  EXPECT_EQ(row_of(comparison, "softmax").cells[1]->values, (std::vector<double>{60.3, 60.6}));
  EXPECT_EQ(row_of(comparison, "other").cells[2]->values, (std::vector<double>{60, 60}));
  for (const size_t c : {1, 2}) {
    EXPECT_EQ(comparison.columns[c].num_pictures, 50);
    EXPECT_EQ(comparison.columns[c].num_all, 100);
    EXPECT_EQ(comparison.columns[c].num_classes, 10);
  }
  EXPECT_EQ(comparison.problems,
            Lines({"attacks: 1 on the first pictures, as earlier versions took them, are left out "
                   "where there is the same on pictures of all classes"}));
}

// Parts that are neighbours among the pictures may be classes: they give no interval of pictures.
TEST(ComparisonColumns, PartsOfEarlierVersionsAreNotUsed) {
  std::vector<RunData> runs = two_methods([](RunData&, double) {});
  EXPECT_EQ(compare_runs(runs).problems, Lines());
  for (Record& record : runs[1].records) record.labels.erase("cut");
  EXPECT_TRUE(
      has_line(compare_runs(runs).problems, {"intervals: some cover the noise of training only",
                                             "(measure again with --set blocks=50)"}));
}

TEST(ComparisonColumns, DamageIsChosenAsAsked) {
  const std::map<std::string, LabelValue> fog = {{"perturbation", std::string("corruption")},
                                                 {"corruption", std::string("fog")},
                                                 {"severity", int64_t{3}}};
  const std::vector<RunData> runs = two_methods([&](RunData& run, double) {
    auto labels = fog;
    labels["max_pictures"] = int64_t{50};
    add_measurement(run, "accuracy", 11, labels, 50);
    labels = fog;
    labels["corruption"] = std::string("snow");
    add_measurement(run, "accuracy", 12, labels);
  });
  const auto value = [&](const ComparisonOptions& options) {
    return row_of(compare_runs(runs, options), "other").cells[1]->values[0];
  };
  EXPECT_EQ(value({.damages = {{"corruption", {.kind = "fog"}}}, .num_pictures = 50}), 11);
  EXPECT_EQ(value({.damages = {{"corruption", {.kind = "fog"}}}, .num_pictures = 0}), 42.3);
  EXPECT_EQ(value({.damages = {{"corruption", {.kind = "fog"}}}, .num_pictures = 200}), 42.3)
      << "there are 100";
  EXPECT_EQ(value({.damages = {{"corruption", {.kind = "snow"}}}}), 12);
  const Comparison few =
      compare_runs(runs, {.damages = {{"corruption", {.kind = "fog"}}}, .num_pictures = 50});
  EXPECT_EQ(few.columns[1].num_pictures, 50);
}

}  // namespace
}  // namespace elliptical::report
