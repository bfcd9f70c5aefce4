// SPDX-License-Identifier: MIT
#include "elliptical/report/robustness.h"

#include <gtest/gtest.h>

#include <limits>

#include "elliptical/tasks/classify_image_measures.h"

namespace elliptical::report {
namespace {

using nlohmann::json;

constexpr const measure::TaskMeasures& kMeasures = tasks::kClassifyImageMeasures;

Record attacked(const char* metric, double value, double eps) {
  return {metric,
          value,
          100,
          {{"attack", std::string("pgd")},
           {"data", std::string("cifar-10")},
           {"eps", eps / 255},
           {"metric_gradient", std::string("through")},
           {"pictures_total", int64_t{100}},
           {"profile", std::string("strict")},
           {"source", std::string("attack")},
           {"split", std::string("test")},
           {"step", int64_t{10}}}};
}

Record corrupted(const char* name, int64_t severity, double value) {
  return {"corrupted_accuracy",
          value,
          100,
          {{"corruption_name", std::string(name)},
           {"corruption_severity", severity},
           {"data", std::string("cifar-10")},
           {"split", std::string("test")},
           {"step", int64_t{10}}}};
}

class Robustness : public ::testing::Test {
 protected:
  std::vector<RunData> runs_ = {{.folder = "a1", .name = "a", .seed = 1},
                                {.folder = "a2", .name = "a", .seed = 2},
                                {.folder = "b1", .name = "b", .seed = 1}};
  const std::vector<std::string> methods_ = {"b", "a"};
  std::vector<std::string> problems_;

  ChartData data() {
    ChartData result;
    add_attack_data(runs_, methods_, kMeasures, result, problems_);
    add_corruption_data(runs_, methods_, kMeasures, result, problems_);
    return result;
  }

  static std::vector<json> column(const DataTable& table, const std::string& name) {
    std::vector<json> values;
    for (size_t row = 0; row < table.size(); ++row) values.push_back(table.at(row, name));
    return values;
  }
};

TEST_F(Robustness, OfAttacksIsMeanAndRangeOverSeeds) {
  runs_[0].records = {attacked("clean_accuracy", 90, 2), attacked("robust_accuracy", 40, 2)};
  runs_[1].records = {attacked("clean_accuracy", 92, 2), attacked("robust_accuracy", 30, 2)};
  runs_[2].records = {attacked("clean_accuracy", 80, 2), attacked("robust_accuracy", 50, 2)};
  const ChartData tables = data();
  const DataTable& table = tables.at("attacks");
  EXPECT_EQ(column(table, "method"), (std::vector<json>{"b", "b", "a", "a"}));
  EXPECT_EQ(column(table, "eps"), (std::vector<json>{0, 2, 0, 2}));
  EXPECT_EQ(column(table, "accuracy"), (std::vector<json>{80, 50, 91, 35}));
  EXPECT_EQ(column(table, "low"), (std::vector<json>{nullptr, nullptr, 90, 30}));
  EXPECT_EQ(column(table, "high"), (std::vector<json>{nullptr, nullptr, 92, 40}));
  EXPECT_EQ(column(table, "seeds"), (std::vector<json>{1, 1, 2, 2}));
  const std::vector<Chart> charts = attack_charts(methods_, kMeasures, tables);
  ASSERT_EQ(charts.size(), 1U);
  EXPECT_EQ(charts[0].title, "pgd, strict");
  EXPECT_EQ(charts[0].text.find("same number"), std::string::npos);
  EXPECT_TRUE(problems_.empty());
}

TEST_F(Robustness, A2TellsWhatAttacksNoticed) {
  Record doubted = attacked("robust_accuracy", 40, 2), remarked = attacked("robust_accuracy", 3, 2);
  doubted.labels["flag_zero_gradients"] = true;
  remarked.labels["flag_few_classes"] = true;
  runs_[0].records = {doubted};
  runs_[1].records = runs_[2].records = {remarked};
  data();
  EXPECT_EQ(problems_,
            (std::vector<std::string>{
                "a1: accuracy under pgd, eps 2/255 may be too high, some pictures have no "
                "gradient: flag_zero_gradients (believe attacks without gradients more: --attack "
                "square,spsa)",
                "pgd, eps 2/255: there are fewer classes than apgd-t has targets, it led to each "
                "of them: flag_few_classes (nothing is lost)"}));
}

TEST_F(Robustness, IsOfTheNewestRecordOfTheLastStep) {
  Record early = attacked("robust_accuracy", 1, 2), average = attacked("robust_accuracy", 2, 2);
  early.labels["step"] = int64_t{5};
  average.labels["weights"] = std::string("average");
  runs_[0].records = {attacked("robust_accuracy", 3, 2), attacked("robust_accuracy", 40, 2), early,
                      average};
  EXPECT_EQ(column(data().at("attacks"), "accuracy"), std::vector<json>{40});
}

TEST_F(Robustness, HasAChartForEachAttackItsOptionsAndProfile) {
  Record published = attacked("robust_accuracy", 1, 2), changed = attacked("robust_accuracy", 2, 2);
  published.labels["profile"] = std::string("published");
  changed.labels["attack_options"] = std::string("steps=7");
  changed.count = 50;
  Record more = changed;
  more.labels["eps"] = 3.0 / 255;
  more.count = 60;
  runs_[0].records = {published, attacked("robust_accuracy", 3, 2), changed, more};
  const std::vector<Chart> charts = attack_charts(methods_, kMeasures, data());
  ASSERT_EQ(charts.size(), 3U);
  EXPECT_EQ(charts[0].title, "pgd, strict");
  EXPECT_EQ(charts[1].title, "pgd, steps=7, strict");
  EXPECT_EQ(charts[2].title, "pgd, published");
  EXPECT_EQ(charts[1].where, (std::map<std::string, std::string>{{"attack", "pgd, steps=7"},
                                                                 {"profile", "strict"}}));
  EXPECT_NE(charts[1].text.find("Not all points are of the same number of pictures"),
            std::string::npos);
}

TEST_F(Robustness, LeavesOutWhatIsNoNumberAndOtherPictures) {
  Record other = attacked("robust_accuracy", 1, 2), nameless = attacked("robust_accuracy", 2, 2);
  other.labels["data"] = std::string("cifar-100");
  nameless.labels.erase("eps");
  runs_[0].records = {attacked("robust_accuracy", 40, 2), other, nameless};
  runs_[1].records = {attacked("robust_accuracy", std::numeric_limits<double>::quiet_NaN(), 2)};
  runs_[2].records = {attacked("robust_accuracy", 50, 2)};
  EXPECT_EQ(column(data().at("attacks"), "accuracy"), (std::vector<json>{50, 40}));
  ASSERT_EQ(problems_.size(), 1U);
  EXPECT_EQ(problems_[0],
            "charts: clean_accuracy, robust_accuracy: drawn on cifar-10, test, which most runs "
            "have; 1 other kind of pictures is left out (the list of numbers has them)");
}

// Earlier versions took the first pictures, which in class folders are of the first classes, and
// did not say so of attacks. Where runs have both, those of all classes are drawn.
TEST_F(Robustness, DoesNotMixTheFirstPicturesWithThoseOfAllClasses) {
  Record few = attacked("robust_accuracy", 40, 2), first = attacked("robust_accuracy", 70, 1);
  few.labels["max_pictures"] = int64_t{50};
  few.labels["subset"] = std::string("balanced");
  first.labels.erase("pictures_total");
  Record fewer = few;
  fewer.labels["attack"] = std::string("auto-attack");
  fewer.labels["max_pictures"] = int64_t{10};
  fewer.value = 30;
  Record fog = corrupted("fog", 3, 60), fair_fog = corrupted("fog", 3, 50);
  fog.labels["max_pictures"] = fair_fog.labels["max_pictures"] = int64_t{50};
  fair_fog.labels["subset"] = std::string("balanced");
  fair_fog.labels["pictures_total"] = int64_t{100};
  runs_[0].records = {first, few, fewer, fog, fair_fog};
  runs_[2].records = runs_[0].records;
  const ChartData charts = data();
  EXPECT_EQ(column(charts.at("attacks"), "accuracy"), (std::vector<json>{30, 30, 40, 40}))
      << "attacks of different numbers of pictures are drawn";
  EXPECT_EQ(column(charts.at("corruptions"), "accuracy"), (std::vector<json>{50, 50}));
  EXPECT_EQ(problems_,
            (std::vector<std::string>{
                "charts: clean_accuracy, robust_accuracy: drawn on cifar-10, test, which most runs "
                "have; 1 other kind of pictures is left out (the list of numbers has them)",
                "charts: corrupted_accuracy: drawn on cifar-10, test, 50 of 100 pictures, which "
                "most runs have; 1 other kind of pictures is left out (the list of numbers has "
                "them)"}));
}

TEST_F(Robustness, OfManyAttacksIsBounded) {
  for (int i = 0; i < 100; ++i) {
    Record record = attacked("robust_accuracy", 1, 2);
    record.labels["attack"] = "attack " + std::to_string(i);
    runs_[0].records.push_back(record);
  }
  EXPECT_EQ(attack_charts(methods_, kMeasures, data()).size(), kMaxAttackCharts);
  ASSERT_EQ(problems_.size(), 1U);
  EXPECT_EQ(problems_[0], "charts: at most 24 attacks with 4000 points are drawn");
}

TEST_F(Robustness, OfCorruptionsIsOverSeveritiesThatAllRunsHave) {
  runs_[0].records = {corrupted("fog", 1, 80), corrupted("fog", 2, 60), corrupted("fog", 3, 10)};
  runs_[2].records = {corrupted("fog", 1, 70), corrupted("fog", 2, 40), corrupted("snow", 1, 5)};
  const ChartData tables = data();
  const DataTable& table = tables.at("corruptions");
  EXPECT_EQ(column(table, "corruption"), (std::vector<json>{"fog", "fog", "snow"}));
  EXPECT_EQ(column(table, "accuracy"), (std::vector<json>{55, 70, 5}));
  EXPECT_EQ(column(table, "severities"), (std::vector<json>{2, 2, 1}));
  // No corruption has all severities of all runs, so there is no mean over corruptions.
  const DataTable& severities = tables.at("severities");
  EXPECT_EQ(severities.size(), 6U);
  EXPECT_EQ(severities.at(0, "corruption"), "fog");
}

TEST_F(Robustness, OverSeverityStartsWithTheMeanOfCorruptions) {
  for (const size_t run : {0, 1}) {
    for (const int64_t severity : {1, 2}) {
      runs_[run].records.push_back(corrupted("fog", severity, 90.0 - 10 * severity));
      runs_[run].records.push_back(corrupted("snow", severity, 70.0 - 10 * severity));
    }
  }
  const ChartData tables = data();
  const DataTable& table = tables.at("severities");
  EXPECT_EQ(table.at(0, "corruption"), "mean of 2");
  EXPECT_EQ(table.at(0, "severity"), 1);
  EXPECT_EQ(table.at(0, "accuracy"), 70);
  EXPECT_EQ(table.at(1, "accuracy"), 60);
  EXPECT_EQ(table.at(1, "seeds"), 2);
  EXPECT_EQ(corruption_charts(methods_, kMeasures, tables).size(), 2U);
}

TEST_F(Robustness, ShowsMeanCorruptionErrors) {
  runs_[0].records = {{"mce", 70, 100, {{"step", int64_t{1}}}}};
  runs_[1].records = {{"mce", 72, 100, {{"step", int64_t{1}}}},
                      {"extra_mce", 60, 100, {{"step", int64_t{1}}}}};
  const ChartData tables = data();
  EXPECT_EQ(column(tables.at("corruption_errors"), "error"), (std::vector<json>{71, 60}));
  const std::vector<Chart> charts = corruption_charts(methods_, kMeasures, tables);
  ASSERT_EQ(charts.size(), 2U);
  EXPECT_EQ(charts[0].id, "mce");
  EXPECT_EQ(charts[1].id, "extra_mce");
}

TEST_F(Robustness, WithoutRecordsHasNoChart) {
  const ChartData tables = data();
  EXPECT_TRUE(attack_charts(methods_, kMeasures, tables).empty());
  EXPECT_TRUE(corruption_charts(methods_, kMeasures, tables).empty());
  EXPECT_TRUE(problems_.empty());
}

}  // namespace
}  // namespace elliptical::report
