// SPDX-License-Identifier: MIT
#include "elliptical/run/comparison_plan.h"

#include <gtest/gtest.h>

#include "elliptical/base/config.h"
#include "elliptical/base/controls.h"
#include "elliptical/base/errors.h"
#include "tests/run/run_fixture.h"

namespace elliptical::run {
namespace {

using testing::message_of;
using Names = std::vector<std::string>;

RunOptions recipe(const std::vector<std::string>& assignments) {
  RunOptions options;
  apply_overrides(assignments, fields_of(options));
  return options;
}

const RunOptions kSoftmax = recipe({"task.model.attention.name=softmax"});
const RunOptions kElliptical = recipe({"task.model.attention.name=elliptical"});

std::vector<PlannedRun> plan(const std::vector<RunOptions>& recipes,
                             const std::vector<int64_t>& seeds = {1},
                             const std::string& controls = "all") {
  return plan_comparison(
      {.recipes = recipes, .seeds = seeds, .controls = parse_controls(controls), .folder = "runs"});
}

Names titles(const std::vector<PlannedRun>& runs) {
  Names result;
  for (const PlannedRun& run : runs) result.push_back(run.title());
  return result;
}

/// "a.b: 3, was 2" of a run against another.
Names changes(const PlannedRun& run, const PlannedRun& other) {
  RunOptions now = run.options, before = other.options;
  return differences(fields_of(now), fields_of(before));
}

TEST(ComparisonPlan, SoftmaxMethodControlsSeedBySeed) {
  const auto runs = plan({kElliptical, kSoftmax}, {1, 4});
  EXPECT_EQ(
      titles(runs),
      Names({"softmax, seed 1", "elliptical, seed 1", "matched constant, seed 1",
             "learned temperature, seed 1", "isotropic, seed 1", "random fixed, seed 1",
             "mean scaling, seed 1", "null twin, seed 1", "softmax, seed 4", "elliptical, seed 4",
             "matched constant, seed 4", "learned temperature, seed 4", "isotropic, seed 4",
             "random fixed, seed 4", "mean scaling, seed 4", "null twin, seed 4"}));
  EXPECT_EQ(runs[2].folder, "runs/matched-constant-seed-1");
  EXPECT_EQ(runs[2].options.name, "matched constant");
  EXPECT_EQ(runs[10].options.seed, 4);
}

TEST(ComparisonPlan, ControlsDifferInTheMetricAlone) {
  const auto runs = plan({kSoftmax, kElliptical});
  for (size_t i = 2; i < runs.size(); ++i) {
    for (const std::string& line : changes(runs[i], runs[1])) {
      const bool is_expected =
          line.starts_with("name:") || line.starts_with("task.model.attention.metric.");
      EXPECT_TRUE(is_expected) << runs[i].title() << ": " << line;
    }
  }
  EXPECT_EQ(changes(runs[6], runs[1]),
            Names({"name: \"mean scaling\", was \"elliptical\"",
                   "task.model.attention.metric.scaling: \"mean\", was \"max\""}));
}

TEST(ComparisonPlan, ValuesComeFromThePairedRun) {
  const auto runs = plan({kSoftmax, kElliptical}, {1, 2});
  for (size_t i = 0; i < runs.size(); ++i) {
    const bool needs = runs[i].name == kMatchedConstant || runs[i].name == kLearnedTemperature ||
                       runs[i].name == kNullTwin;
    ASSERT_EQ(runs[i].value_of.has_value(), needs) << runs[i].title();
    if (!needs) continue;
    const PlannedRun& source = runs[*runs[i].value_of];
    EXPECT_EQ(source.name, "elliptical");
    EXPECT_EQ(source.seed(), runs[i].seed());
    EXPECT_LT(*runs[i].value_of, i);
  }
  const auto value = [](const PlannedRun& run) {
    RunOptions options = with_value(run, 0.625);
    for (const FieldText& field : describe(fields_of(options))) {
      if (field.key == "task.model.attention.metric.value") return std::stod(field.value);
    }
    return -1.0;
  };
  EXPECT_EQ(value(runs[2]), 0.625);
  EXPECT_EQ(value(runs[3]), 0.625);
  EXPECT_EQ(value(runs[7]), 0.625 * 1.002);  // every digit
}

TEST(ComparisonPlan, SoftmaxIsAdded) {
  const auto runs = plan({kElliptical}, {1}, "none");
  EXPECT_EQ(titles(runs), Names({"softmax, seed 1", "elliptical, seed 1"}));
  // It is the same recipe with another attention.
  for (const std::string& line : changes(runs[0], runs[1])) {
    EXPECT_TRUE(line.starts_with("name:") || line.starts_with("task.model.attention.")) << line;
  }
}

TEST(ComparisonPlan, ControlsCanBeChosen) {
  EXPECT_EQ(
      titles(plan({kSoftmax, kElliptical}, {1}, "null twin,isotropic")),
      Names({"softmax, seed 1", "elliptical, seed 1", "isotropic, seed 1", "null twin, seed 1"}));
  EXPECT_EQ(titles(plan({kSoftmax})), Names({"softmax, seed 1"}));  // nothing to control
}

TEST(ComparisonPlan, SeveralMethods) {
  const RunOptions other = recipe({"name=sharp", "task.model.attention.name=elliptical",
                                   "task.model.attention.scale_logits=false"});
  const auto runs = plan({kElliptical, other}, {1}, "matched constant");
  EXPECT_EQ(titles(runs), Names({"softmax, seed 1", "elliptical, seed 1", "sharp, seed 1",
                                 "matched constant, seed 1"}));
  EXPECT_EQ(runs[3].value_of, 1);  // of the first
}

TEST(ComparisonPlan, RefusesWhatCanNotBeCompared) {
  EXPECT_EQ(message_of<ConfigError>([] { plan({kElliptical, kElliptical}); }),
            "compare: recipes must have different names, two are called \"elliptical\" (set name = "
            "\"...\" in one of them)");
  EXPECT_EQ(
      message_of<ConfigError>([] { plan({kElliptical, recipe({"task.data.name=wikitext-2"})}); }),
      "compare: recipes must be of one data set, got small-language and wikitext-2 (compare "
      "them one by one)");
}

TEST(ComparisonPlan, Seeds) {
  using Seeds = std::vector<int64_t>;
  EXPECT_EQ(parse_seeds("3"), Seeds({1, 2, 3}));
  EXPECT_EQ(parse_seeds("2,0,7"), Seeds({2, 0, 7}));
  EXPECT_EQ(parse_seeds("5,"), Seeds({5}));
  for (const char* text : {"", "0", "-1", "x", "1,,2", "1,1", "3.5", "99999999999999999999"}) {
    EXPECT_EQ(message_of<UsageError>([&] { parse_seeds(text); }),
              std::string("compare: --seeds must be how many (3) or which ones (1,2,5), got \"") +
                  text + "\"");
  }
}

TEST(ComparisonPlan, Controls) {
  EXPECT_EQ(parse_controls("all").size(), kControls.size());
  EXPECT_EQ(parse_controls("none"), Names());
  EXPECT_EQ(parse_controls("isotropic"), Names({"isotropic"}));
  EXPECT_EQ(message_of<UsageError>([] { parse_controls("isotropc"); }),
            "compare: --controls: unknown \"isotropc\", did you mean \"isotropic\"?");
}

TEST(ComparisonPlan, MeanOfTheMetricIsThatOfTrainingAtItsEnd) {
  const auto record = [](double value, int64_t step, const char* source) {
    return Record{.metric = "metric_mean",
                  .value = value,
                  .labels = {{"step", step}, {"source", std::string(source)}}};
  };
  const std::vector<Record> records = {record(0.1, 50, "train"), record(0.2, 100, "train"),
                                       record(0.3, 100, "eval")};
  EXPECT_EQ(measured_metric_mean(records, 100), 0.2);
  EXPECT_EQ(measured_metric_mean(records, 99), std::nullopt);
}

TEST(ComparisonPlan, S3ANameThatLeavesTheFolderIsRefused) {
  const auto message = [](const std::string& name) {
    RunOptions options = kElliptical;
    options.name = name;
    return message_of<ConfigError>([&] { plan({kSoftmax, options}); });
  };
  const std::string rule =
      "compare: name must be that of a folder: no \"/\", no control characters, no \".\" or \"-\" "
      "in "
      "front, at most 100 bytes, got \"";
  const std::string advice = "\" (set name = \"...\")";
  for (const std::string name : {"../out", "/tmp/out", "a/b", "..", ".", ".hidden", "-rf", "/"}) {
    EXPECT_EQ(message(name), rule + name + advice);
  }
  EXPECT_EQ(message("a\nb\x1B[2J"), rule + "a?b?[2J" + advice);
  EXPECT_EQ(message(std::string(200, 'x')), rule + std::string(100, 'x') + advice);
  RunOptions fine = kElliptical;
  fine.name = "elliptical, 2.0 (\xC3\xA9t\xC3\xA9)";  // dots and spaces inside are no way out
  EXPECT_EQ(plan({kSoftmax, fine}, {1}, "none")[1].folder,
            "runs/elliptical,-2.0-(\xC3\xA9t\xC3\xA9)-seed-1");
}

TEST(ComparisonPlan, NamesThatGiveOneFolderAreRefused) {
  const auto named = [](const std::string& name) {
    RunOptions options = kElliptical;
    options.name = name;
    return options;
  };
  EXPECT_EQ(message_of<ConfigError>([&] { plan({kSoftmax, named("a b"), named("a-b")}); }),
            "compare: names must give different folders, \"a b\" and \"a-b\" both give a-b-seed-1 "
            "(set name = \"...\" in a recipe)");
  EXPECT_EQ(message_of<ConfigError>([&] { plan({kSoftmax, named("null twin")}); }),
            "compare: names must give different folders, \"null twin\" and \"null twin\" both give "
            "null-twin-seed-1 (set name = \"...\" in a recipe)");
}

}  // namespace
}  // namespace elliptical::run
