// SPDX-License-Identifier: MIT
#include "elliptical/measure/labels.h"

#include <gtest/gtest.h>

#include <limits>

#include "elliptical/base/errors.h"

namespace elliptical::measure {
namespace {

Record labelled(std::map<std::string, LabelValue> labels) {
  return {.metric = "accuracy", .value = 90, .count = 10, .labels = std::move(labels)};
}

const Record kRecord = labelled({{"flag", true},
                                 {"number", 0.025},
                                 {"source", std::string("train")},
                                 {"step", int64_t{7}},
                                 {"text", std::string("12")}});

TEST(Labels, AreReadByTheirType) {
  EXPECT_EQ(text_label(kRecord, "text"), "12");
  EXPECT_EQ(whole_label(kRecord, "step"), 7);
  EXPECT_EQ(flag_label(kRecord, "flag"), true);
  EXPECT_EQ(number_label(kRecord, "number"), 0.025);
  EXPECT_EQ(number_label(kRecord, "step"), 7) << "a whole number is a number";
}

TEST(Labels, ThatAreAbsentOrOfAnotherTypeAreNothing) {
  EXPECT_EQ(number_label(kRecord, "eps"), std::nullopt) << "neither 0 nor NaN";
  EXPECT_EQ(whole_label(kRecord, "number"), std::nullopt);
  EXPECT_EQ(whole_label(kRecord, "text"), std::nullopt);
  EXPECT_EQ(text_label(kRecord, "step"), std::nullopt);
  EXPECT_EQ(flag_label(kRecord, "source"), std::nullopt);
}

TEST(Labels, ThatAreRequiredSayWhichIsMissing) {
  EXPECT_EQ(required_label<std::string>(kRecord, "text"), "12");
  EXPECT_EQ(required_label<double>(kRecord, "number"), 0.025);
  for (const char* name : {"eps", "text"}) {
    try {
      required_label<int64_t>(kRecord, name);
      FAIL() << name;
    } catch (const DataError& error) {
      EXPECT_EQ(error.what(), "label " + std::string(name) + " is missing or of another type");
    }
  }
}

TEST(Labels, AreTextOfAnyType) {
  EXPECT_EQ(label_text(kRecord, "flag"), "true");
  EXPECT_EQ(label_text(kRecord, "step"), "7");
  EXPECT_EQ(label_text(kRecord, "text"), "12");
  EXPECT_EQ(label_text(kRecord, "nothing"), "");
  EXPECT_EQ(label_text(LabelValue(std::numeric_limits<double>::quiet_NaN())), "nan");
  EXPECT_EQ(label_text(LabelValue(-std::numeric_limits<double>::infinity()), 6), "-inf");
}

TEST(Labels, SpellNumbersAsRecordsDo) {
  for (const double number : {0.025, 1.0, 1.0 / 3, 1e-5, 1.0 / 255, 1e300}) {
    const Record record = labelled({{"eps", number}});
    const std::string line = to_json_line(record), text = label_text(record, "eps");
    EXPECT_NE(line.find("\"eps\":" + text + "}"), line.npos) << line << " has not " << text;
    EXPECT_EQ(std::stod(text), number) << "all digits";
  }
  EXPECT_EQ(label_text(LabelValue(1.0 / 3), 6), "0.333333");
}

TEST(Sources, AreTrainingOnlyWhereTrainingSaysSo) {
  EXPECT_EQ(source_of(kRecord), Source::kTraining);
  EXPECT_EQ(source_of(labelled({{"source", std::string("eval")}})), Source::kEvaluation);
  EXPECT_EQ(source_of(labelled({{"source", std::string("attack")}})), Source::kAttack);
  EXPECT_EQ(source_of(labelled({{"source", std::string("probe")}})), Source::kOther)
      << "a source that is not known yet must not count as training";
  EXPECT_EQ(source_of(labelled({})), Source::kOther);
  EXPECT_EQ(source_of(labelled({{"source", true}})), Source::kOther);
  for (const Source source : {Source::kTraining, Source::kEvaluation, Source::kAttack}) {
    EXPECT_EQ(source_of(labelled({{"source", std::string(to_string(source))}})), source);
  }
}

TEST(Steps, AreNotSaidWhereTheyAreNoWholeNumber) {
  EXPECT_EQ(step_of(kRecord), 7);
  EXPECT_EQ(step_of(labelled({})), -1);
  EXPECT_EQ(step_of(labelled({{"step", 7.5}})), -1);
}

}  // namespace
}  // namespace elliptical::measure
