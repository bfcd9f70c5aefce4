// SPDX-License-Identifier: MIT
//
// What the tasks of the program declare holds together: a slip in a declaration would show only as
// a column that stays empty.
#include "elliptical/measure/task_measures.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>

#include "elliptical/tasks/classify_image_measures.h"
#include "elliptical/tasks/language_model_measures.h"

namespace elliptical::measure {
namespace {

const MeasureTable kTable = {&tasks::kLanguageModelMeasures, &tasks::kClassifyImageMeasures};

TEST(TaskMeasures, AreFoundByTheNameOfTheTask) {
  EXPECT_EQ(&find_measures(kTable, "classify_image"), &tasks::kClassifyImageMeasures);
  EXPECT_EQ(&find_measures(kTable, "segment"), &kNoMeasures);
  EXPECT_EQ(std::string(kNoMeasures.main().name), "");
  EXPECT_EQ(kNoMeasures.usual_perturbation(), nullptr);
}

TEST(TaskMeasures, NumbersAreOfWhatIsDeclared) {
  for (const TaskMeasures* measures : kTable) {
    ASSERT_FALSE(measures->numbers.empty()) << measures->task;
    EXPECT_EQ(measures->numbers.front().condition, Condition::kClean);
    std::set<std::string> names;
    for (const ComparedNumber& number : measures->numbers) {
      EXPECT_TRUE(names.insert(number.name).second) << number.name;
      EXPECT_EQ(number.condition == Condition::kDamaged,
                measures->find_perturbation(number.perturbation) != nullptr)
          << number.name;
      EXPECT_TRUE(number.condition != Condition::kAttacked || measures->is_attacked);
      EXPECT_GT(number.measure->margin, 0) << number.name;
    }
  }
}

TEST(TaskMeasures, PerturbationsCanBeAskedFor) {
  std::set<std::string> flags;
  for (const TaskMeasures* measures : kTable) {
    std::set<std::string> options;
    for (const EvalOption& option : measures->options) options.insert(option.label);
    for (const Perturbation& perturbation : measures->perturbations) {
      for (const char* detail : perturbation.details) {
        EXPECT_TRUE(options.contains(detail)) << detail << ": what is usual is not said";
      }
      bool can_be_off = false;
      for (const Parameter& parameter : parameters_of(perturbation)) {
        EXPECT_TRUE(flags.insert(parameter.flag).second) << parameter.flag;
        can_be_off |= parameter.off != nullptr;
        if (parameter.kind == Parameter::Kind::kText) continue;
        EXPECT_GE(std::stod(parameter.usual), parameter.low);
        EXPECT_LE(std::stod(parameter.usual), parameter.high);
      }
      EXPECT_TRUE(can_be_off) << perturbation.name;
      EXPECT_NE(perturbation.words("fog", 0.5).find(':'), std::string::npos);
    }
  }
}

TEST(Measure, ComparesByLevels) {
  EXPECT_DOUBLE_EQ(tasks::kPerplexity.level(std::exp(3.0)), 3);
  EXPECT_DOUBLE_EQ(tasks::kPerplexity.from_level(3), std::exp(3.0));
  EXPECT_NEAR(tasks::kPerplexity.shown(std::log(1.1)), 10, 1e-12);
  EXPECT_EQ(tasks::kAccuracy.level(70), 70);
  EXPECT_EQ(tasks::kAccuracy.shown(-2), -2);
  EXPECT_TRUE(tasks::kPerplexity.is_gain(-1));
  EXPECT_FALSE(tasks::kAccuracy.is_gain(-1));
  EXPECT_EQ(tasks::kPerplexity.title(), "Perplexity");
}

}  // namespace
}  // namespace elliptical::measure
