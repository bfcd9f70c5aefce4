// SPDX-License-Identifier: MIT
#include "elliptical/report/html.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "elliptical/report/chart_data.h"
#include "elliptical/report/number_list.h"
#include "elliptical/report/section.h"
#include "elliptical/report/web_files.h"
#include "elliptical/tasks/language_model_measures.h"
#include "tests/report/run_folders.h"

namespace elliptical::report {
namespace {

using nlohmann::json;

std::string report_of(const std::vector<RunData>& runs,
                      const std::vector<std::string>& problems = {}) {
  return make_report({runs, problems}, compare_runs(runs), {.version = "1.2.3"});
}

/// The data that a page holds.
json data_of(const std::string& page) {
  const std::string open = "<script type=\"application/json\" id=\"data\">";
  const size_t begin = page.find(open) + open.size();
  return json::parse(page.substr(begin, page.find("</script>", begin) - begin));
}

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(Report, HasOnlyItsOwnScripts) {
  const std::string hostile =
      "</script><script>alert(1)</script><img src=x onerror=alert(1)>{{data}}";
  test::MadeRun made;
  RunData run = test::run_data(made);
  run.name = hostile;
  run.folder = hostile;
  for (Record& record : run.records) record.labels["note"] = hostile;
  const std::string page = report_of({run}, {hostile});
  EXPECT_EQ(count(page, "<script"), 8U);  // data, three of Vega, four of ours
  EXPECT_EQ(count(page, "</script>"), 8U);
  EXPECT_EQ(count(page, "<img"), count(report_of({}), "<img"));  // Vega has one in a text
  EXPECT_EQ(count(page, "'sha256-"), 7U);
  EXPECT_EQ(page.find("unsafe-eval"), page.npos);
  EXPECT_EQ(data_of(page)["runs"][0]["method"], hostile);
}

TEST(Report, CarriesTheLicences) {
  EXPECT_NE(report_of({}).find(web_files().licences), std::string::npos);
}

TEST(Report, OneSeedHasNumbersAndNoDifferences) {
  std::vector<RunData> runs = {test::run_data({.name = "softmax"}),
                               test::run_data({.name = "other", .clean = 4.1})};
  const std::string page = report_of(runs);
  EXPECT_NE(page.find("One seed can not tell differences."), page.npos);
  EXPECT_NE(page.find("Nothing can be said with one seed about differences"), page.npos);
  EXPECT_EQ(page.find("difference, %"), page.npos);
  EXPECT_FALSE(data_of(page)["charts"].contains("difference-0"));
  for (const int64_t seed : {2, 3}) {
    runs.push_back(test::run_data({.name = "softmax", .seed = seed}));
    runs.push_back(test::run_data({.name = "other", .seed = seed, .clean = 4.1}));
  }
  const std::string more = report_of(runs);
  EXPECT_NE(more.find("difference, %"), page.npos);
  EXPECT_NE(more.find("within 0.05&thinsp;%, the smallest difference that can matter"), more.npos);
  EXPECT_TRUE(data_of(more)["charts"].contains("difference-0"));
}

TEST(Report, EqualIsMarkedAsSuch) {
  std::vector<RunData> runs;
  for (const int64_t seed : {1, 2, 3}) {
    runs.push_back(test::run_data({.name = "softmax", .seed = seed}));
    runs.push_back(test::run_data({.name = "other", .seed = seed, .clean = 4.0001}));
  }
  const std::string page = report_of(runs);
  EXPECT_NE(page.find("<span class=\"noise\">= +0.01"), page.npos);
  EXPECT_EQ(page.find("<span class=\"worse\">&#9654;"), page.npos);
}

TEST(Report, SmokeRunsCarryABanner) {
  RunData run = test::run_data({});
  const std::string banner = std::string("<b>") + kSmokeBanner + "</b>";
  EXPECT_EQ(report_of({run}).find(banner), std::string::npos);
  run.config = "smoke = true\n" + run.config;
  EXPECT_NE(report_of({run}).find(banner), std::string::npos);
}

TEST(Report, A2NamesWhatAnAttackDoubtsOnce) {
  // One method alone has no column, two have one: either way it is named once.
  for (const bool has_other : {false, true}) {
    std::vector<RunData> runs = {test::picture_run("softmax", 1, 70, 40)};
    if (has_other) runs.push_back(test::picture_run("other", 1, 70, 40));
    for (RunData& run : runs) {
      test::add_attack(run, "auto-attack", 2.0 / 255, 30,
                       {{"skipped_stages", std::string("apgd-t")}});
    }
    EXPECT_EQ(count(report_of(runs),
                    "<li>runs/softmax-seed-1: accuracy under auto-attack, eps 2/255 may be too "
                    "high, apgd-t was skipped, the model has too few classes for it"),
              1U);
  }
}

TEST(Report, LossesThatAreNoNumbersAreCounted) {
  RunData run = test::run_data({});
  for (int64_t step = 0; step < 10; ++step) {
    run.log.push_back({"loss", step == 3 ? std::nan("") : 5.0, 1, {{"step", step}}});
  }
  const std::string page = report_of({run});
  EXPECT_NE(page.find("1 losses are not finite"), page.npos);
}

TEST(LossData, HasABoundedNumberOfPoints) {
  std::vector<RunData> runs;
  for (int64_t seed = 0; seed < 200; ++seed) {
    RunData run = test::run_data({.seed = seed});
    run.records.clear();
    for (int64_t step = 0; step < 3000; step += 10) {
      run.log.push_back({"loss", static_cast<double>(step + seed), 1, {{"step", step}}});
    }
    runs.push_back(run);
  }
  ChartData data;
  std::vector<std::string> problems;
  add_loss_data(runs, {runs[0].name}, data, problems);
  const DataTable& losses = data.at("losses");
  EXPECT_LE(losses.size(), kMaxPoints + 1);
  EXPECT_GT(losses.size(), kMaxPoints / 2);
  // Range 0 holds steps 0 and 10: means 5 + seed over seeds 0 .. 199.
  EXPECT_EQ(losses.at(0, "step"), 5);
  EXPECT_EQ(losses.at(0, "value"), chart_number(5 + 99.5));
  EXPECT_EQ(losses.at(0, "low"), 5);
  EXPECT_EQ(losses.at(0, "high"), 204);
}

TEST(Numbers, CarryTheCommandThatMeasuresThemAgain) {
  RunData run{
      .folder = "my runs/a",
      .measures = &tasks::kLanguageModelMeasures,
      .config = "[task.model]\nwindow = 64\n[task.model.attention.metric]\nscope = \"prefix\"\n"};
  Record record{
      "perplexity", 31.5, 10, {{"source", std::string("eval")}, {"split", std::string("test")}}};
  record.labels["step"] = int64_t{500};
  record.labels["window"] = int64_t{64};
  record.labels["columns"] = int64_t{10};
  record.labels["metric_scope"] = std::string("prefix");
  EXPECT_EQ(command_of(record, run), "elliptical eval 'my runs/a' --split test --step 500");
  record.labels["perturbation"] = std::string("word_swap");
  record.labels["swap_rate"] = 0.025;
  record.labels["swap_seed"] = int64_t{3};
  record.labels["window"] = int64_t{32};
  record.labels["metric_scope"] = std::string("sequence");
  EXPECT_EQ(command_of(record, run),
            "elliptical eval 'my runs/a' --split test --swap 0.025 --set swap_seed=3 "
            "--set metric_scope=sequence --set window=32 --step 500");
  record.labels["source"] = std::string("train");
  EXPECT_EQ(command_of(record, run), "elliptical train 'my runs/a/config.toml' --run NEW_FOLDER");
}

TEST(Numbers, OfAttacksCarryTheAttack) {
  RunData run = test::picture_run("softmax", 1, 70, 40);
  test::add_attack(run, "pgd", 2.0 / 255, 30, {{"attack_options", std::string("steps=7")}});
  const NumberList list = list_numbers({run});
  ASSERT_EQ(list.num_all, 3U) << "two accuracies and this one";
  EXPECT_EQ(list.rows[2]["command"],
            "elliptical attack runs/softmax-seed-1 --attack pgd --eps 2/255 --set pgd.steps=7 "
            "--split test --eval-set max_pictures=50 --step 100");
}

// A row of the table is a whole section: without what it reads it is not there, and leaves what the
// page's script looks for.
TEST(Sections, WithoutRunsThereAreNone) {
  const Comparison nothing = compare_runs({});
  const std::vector<RunData> no_runs;
  const std::optional<VariantBench> no_bench;
  std::set<std::string> names;
  for (const SectionEntry& entry : section_table()) {
    EXPECT_TRUE(names.insert(entry.name).second) << entry.name;
    EXPECT_NE(std::string(entry.reads), "") << entry.name;
    const SectionParts parts =
        entry.make({.runs = no_runs, .comparison = nothing, .bench = no_bench, .methods = {}});
    EXPECT_EQ(parts.html, "") << entry.name;
    EXPECT_TRUE(parts.charts.empty()) << entry.name;
    EXPECT_TRUE(parts.problems.empty()) << entry.name;
  }
  EXPECT_GE(names.size(), 11U);
}

// What a section says of a task's data is what the task declares.
TEST(Sections, HaveNoWordsOfOtherTasks) {
  const std::string text = report_of({test::run_data({})}),
                    pictures = report_of({test::picture_run("softmax", 1, 70, 40)});
  EXPECT_NE(text.find("Loss in nats, per token."), text.npos);
  EXPECT_EQ(text.find("per picture."), text.npos);
  EXPECT_EQ(pictures.find("per token."), pictures.npos);
  for (const char* of_pictures : {"Attacked pictures", "<h2>Corruptions", "of a picture; at 0"}) {
    EXPECT_EQ(text.find(of_pictures), text.npos) << of_pictures;
  }
}

// Also of attacks that no comparison has a column of, for which another method is needed.
TEST(Report, A2TellsWhatAnAttackRemarks) {
  std::vector<RunData> runs = {test::picture_run("softmax", 1, 70, 40)};
  test::add_attack(runs[0], "auto-attack", 2.0 / 255, 30, {{"flag_few_classes", true}});
  const std::string remark =
      "<li>auto-attack, eps 2/255: there are fewer classes than apgd-t has targets, it led to each "
      "of them: flag_few_classes (nothing is lost)</li>";
  EXPECT_EQ(count(report_of(runs), remark), 1U);
  runs.push_back(test::picture_run("other", 1, 70, 40));
  test::add_attack(runs[1], "auto-attack", 2.0 / 255, 30, {{"flag_few_classes", true}});
  EXPECT_EQ(count(report_of(runs), remark), 1U) << "once, whatever the number of runs";
}

TEST(Report, ComparesUnderAttackAndSaysWhichWayIsBetter) {
  std::vector<RunData> runs;
  for (const int64_t seed : {1, 2}) {
    for (const char* name : {"softmax", "other"}) {
      const double better = std::string(name) == "other" ? 2 : 0;
      runs.push_back(test::picture_run(name, seed, 70 + better, 40 + better));
      test::add_attack(runs.back(), "pgd", 2.0 / 255, 30 - better);
    }
  }
  const std::string page = report_of(runs);
  EXPECT_NE(page.find("<th colspan=\"2\" scope=\"colgroup\">pgd, eps 2/255</th>"), page.npos);
  EXPECT_NE(page.find("<span class=\"better\">&#9654; +2.00 ["), page.npos) << "more accuracy";
  EXPECT_NE(page.find("<span class=\"worse\">&#9664; &minus;2.00 ["), page.npos);
  EXPECT_NE(page.find("in points over the seeds that both have. Higher is better."), page.npos);
  const json data = data_of(page);
  EXPECT_TRUE(data["charts"].contains("difference-2"));
  EXPECT_FALSE(data["charts"].contains("value-2")) << "it has a chart over eps";
  EXPECT_TRUE(data["charts"].contains("attack-0"));
}

TEST(Numbers, LeaveBlocksAndHeadsToCharts) {
  const RunData run{
      .folder = "a",
      .records = {{"perplexity", 30, 1, {{"source", std::string("train")}, {"step", int64_t{1}}}},
                  {"perplexity", 20, 1, {{"source", std::string("train")}, {"step", int64_t{2}}}},
                  {"block_nll", 3, 1, {{"source", std::string("eval")}, {"block", int64_t{0}}}},
                  {"perplexity", 19, 1, {{"source", std::string("eval")}}}}};
  const NumberList list = list_numbers({run});
  EXPECT_EQ(list.num_all, 2U);
  EXPECT_EQ(list.rows[0]["text"], "20.000");
  EXPECT_EQ(list.rows[1]["text"], "19.000");
}

}  // namespace
}  // namespace elliptical::report
