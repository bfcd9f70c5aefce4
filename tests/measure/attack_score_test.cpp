// SPDX-License-Identifier: MIT
//
// Lines of attacks.jsonl, which may be somebody else's. Fault ID: R2.
#include "elliptical/measure/attack_score.h"

#include <gtest/gtest.h>

#include "elliptical/base/errors.h"
#include "tests/support/error_message.h"

namespace elliptical::measure::attack_score_test {
namespace {

AttackedBatch sample() {
  return {.digest = "d",
          .batch = 3,
          .score = {.count = 4,
                    .clean_top1 = 3,
                    .clean_top5 = 4,
                    .robust_top1 = 2,
                    .robust_top5 = 3,
                    .seconds = 1.5,
                    .outcomes = "1100",
                    .stages = {{"apgd-ce", 3}, {"square", 2}}}};
}

TEST(AttackScores, ReadBackTheSame) {
  const Record record = to_record(sample());
  EXPECT_EQ(to_json_line(to_record(to_attacked_batch(record))), to_json_line(record));
}

TEST(AttackScores, R2WhatDoesNotFitIsNamed) {
  const auto refusal = [](const std::string& name, const LabelValue& value) {
    Record record = to_record(sample());
    record.labels[name] = value;
    return test::error_message<DataError>([&] { to_attacked_batch(record); });
  };
  constexpr int64_t kHuge = INT64_MAX;
  EXPECT_EQ(refusal("digest", kHuge), "label digest is missing or of another type");
  EXPECT_EQ(refusal("clean_top5", kHuge),
            "label clean_top5 must be 0 to 4, is 9223372036854775807");
  EXPECT_EQ(refusal("robust_top5", int64_t{-1}), "label robust_top5 must be 0 to 4, is -1");
  EXPECT_EQ(refusal("stage_1_square", int64_t{5}), "label stage_1_square must be 0 to 4, is 5");
  EXPECT_EQ(refusal("stage_", int64_t{5}),
            "label stage_: stages must be numbered from 0 to 9, each once");
  EXPECT_EQ(refusal("stage_1_x", int64_t{1}),
            "label stage_1_x: stages must be numbered from 0 to 9, each once");
  EXPECT_EQ(refusal("outcomes", std::string("11")), "label outcomes does not fit the counts");
  EXPECT_EQ(refusal("seconds", -1.0), "label seconds must be a number of seconds, is none");
  Record record = to_record(sample());
  record.count = kHuge;
  EXPECT_TRUE(
      test::error_message<DataError>([&] { to_attacked_batch(record); }).starts_with("count must"));
}

// A second batch with more stages than the first was added beyond the end of the first one's.
TEST(AttackScores, R2BatchesWithOtherStagesAreNotAdded) {
  AttackScore total;
  total.add(sample().score);
  total.add(sample().score);
  EXPECT_EQ(total.stages[1], (std::pair<std::string, int64_t>("square", 4)));
  EXPECT_EQ(total.outcomes, "11001100");
  AttackScore other = sample().score;
  other.stages.emplace_back("more", 1);
  EXPECT_TRUE(test::error_message<DataError>([&] {
                total.add(other);
              }).starts_with("attacks.jsonl: batches of one case must have the same stages"));
  other.stages.clear();
  total.add(other);
  EXPECT_EQ(total.count, 12);
}

}  // namespace
}  // namespace elliptical::measure::attack_score_test
