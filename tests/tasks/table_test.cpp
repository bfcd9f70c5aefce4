// SPDX-License-Identifier: MIT
//
// What every task of the table owes to those who know none by name: the commands, comparisons and
// reports, which set options and read records by the names in task.h and in TaskMeasures.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <set>

#include "elliptical/base/config.h"
#include "elliptical/tasks/task.h"
#include "tests/support/one_thread.h"
#include "tests/support/passes.h"

namespace elliptical::tasks {
namespace {

/// A small task of the entry, on data that are built in.
std::unique_ptr<Task> small_task(const TaskEntry& entry) {
  const std::unique_ptr<Options> options = entry.make_options();
  entry.shrink(*options);
  return entry.make(*options, {.seed = 1});
}

std::set<std::string> names_of(Options& options) {
  std::set<std::string> names;
  for (const FieldText& field : describe(fields_of(options))) names.insert(field.key);
  return names;
}

class TaskTable : public ::testing::TestWithParam<const TaskEntry*> {
 protected:
  const TaskEntry& entry_ = *GetParam();
  const measure::TaskMeasures& measures_ = *entry_.measures;
  std::unique_ptr<Task> task_ = small_task(entry_);
};

TEST_P(TaskTable, IsOneOfItsMeasures) {
  EXPECT_STREQ(measures_.task, entry_.name);
  EXPECT_EQ(task_->labels().at("task"), LabelValue(std::string(entry_.name)));
  EXPECT_EQ(task_->classifier() != nullptr, measures_.is_attacked);
}

TEST_P(TaskTable, EvaluationsHaveTheOptionsThatOthersSet) {
  std::vector<std::string> methods(measures_.methods.begin(), measures_.methods.end());
  std::set<std::string> names;  // of some method: each has options of its own
  for (const std::string& method : methods.empty() ? std::vector<std::string>{""} : methods) {
    const std::unique_ptr<Options> options = task_->make_eval_options();
    std::vector<std::string> assignments = {"split=valid", "split=test", "split=train", "blocks=50",
                                            "metric_profile=true"};
    if (!method.empty()) assignments.push_back("method=" + method);
    if (measures_.has_pictures) assignments.emplace_back("max_pictures=7");
    for (const std::string& assignment : assignments) {
      EXPECT_NO_THROW(apply_overrides({assignment}, fields_of(*options))) << assignment;
    }
    names.merge(names_of(*options));
  }
  for (const measure::Perturbation& perturbation : measures_.perturbations) {
    for (const measure::Parameter& parameter : measure::parameters_of(perturbation)) {
      EXPECT_TRUE(names.contains(parameter.option)) << parameter.option;
      const std::unique_ptr<Options> options = task_->make_eval_options();
      EXPECT_NO_THROW(apply_overrides({std::string(parameter.option) + "=" + parameter.usual},
                                      fields_of(*options)))
          << parameter.option;
    }
  }
  for (const auto& options : {measures_.options, measures_.trained_options}) {
    for (const measure::EvalOption& option : options) {
      EXPECT_TRUE(names.contains(option.option)) << option.option;
    }
  }
}

TEST_P(TaskTable, EvaluationsRecordTheNumbersThatRunsAreComparedBy) {
  const support::OneThread one_thread;
  const std::unique_ptr<Options> options = task_->make_eval_options();
  std::vector<std::string> assignments = {"split=valid", "blocks=2"};
  if (measures_.has_pictures) assignments.emplace_back("max_pictures=20");
  apply_overrides(assignments, fields_of(*options));
  task_->model().eval();
  const std::unique_ptr<EvalSet> set = task_->eval_set(*options);
  EXPECT_EQ(set->labels().at("split"), LabelValue(std::string("valid")));
  EXPECT_EQ(set->labels().at("perturbation"), LabelValue(std::string("none")));
  Scores scores;
  for (int64_t i = 0; i < set->size(); ++i) support::score(*task_, *set, i, scores);
  std::map<std::string, int64_t> counts;
  for (const Record& record : task_->metrics(scores)) ++counts[record.metric];
  for (const measure::ComparedNumber& number : measures_.numbers) {
    if (number.condition != measure::Condition::kClean) continue;
    EXPECT_GE(counts[number.metric], 1) << number.metric;
    EXPECT_EQ(counts[number.block_metric], 2) << number.block_metric;
  }
  for (const std::string& name : task_->metric_names()) EXPECT_EQ(counts[name], 1) << name;
  EXPECT_GE(counts[measures_.loss_metric], 1);
}

TEST_P(TaskTable, TellsTheCostOfAnEvaluationOrThatItIsNone) {
  if (entry_.eval_cost == nullptr) return;
  ASSERT_NE(entry_.eval_units, nullptr);
  const std::unique_ptr<Options> options = entry_.make_options();
  entry_.shrink(*options);
  bool is_any_known = false;
  for (const char* method : measures_.methods) {
    const EvalCost cost =
        entry_.eval_cost(*options, method, entry_.eval_units(*options, method, "valid"));
    EXPECT_EQ(cost.steps > 0, cost.num_units > 0) << method;
    EXPECT_EQ(cost.steps > 0, !cost.method.empty() && !cost.size.empty()) << method;
    is_any_known = is_any_known || cost.steps > 0;
  }
  EXPECT_TRUE(is_any_known);
}

std::vector<const TaskEntry*> all_tasks() {
  std::vector<const TaskEntry*> all;
  for (const TaskEntry& entry : task_table()) all.push_back(&entry);
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, TaskTable, ::testing::ValuesIn(all_tasks()), [](const auto& one) {
  return std::string(one.param->name);
});

}  // namespace
}  // namespace elliptical::tasks
