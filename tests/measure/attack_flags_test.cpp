// SPDX-License-Identifier: MIT
#include "elliptical/measure/attack_flags.h"

#include <gtest/gtest.h>

namespace elliptical::measure {
namespace {

using Lines = std::vector<std::string>;

Record flagged(const char* label, LabelValue value) {
  Record record{.metric = "robust_accuracy", .value = 30, .count = 10};
  for (const char* flag : {kFlagRandomised, kFlagProbabilities, kFlagZeroGradients,
                           kFlagSquareBeatsGradients, kFlagFewClasses}) {
    record.labels[flag] = false;
  }
  record.labels[label] = std::move(value);
  return record;
}

TEST(AttackFlags, A2EachIsToldInWordsWithAdvice) {
  EXPECT_EQ(attack_doubts(flagged(kFlagRandomised, true)),
            Lines{"its answers differ between passes over the same picture: flag_randomised "
                  "(attack it with --attack auto-attack --set auto-attack.version=rand)"});
  EXPECT_EQ(attack_doubts(flagged(kFlagProbabilities, true)),
            Lines{"it gives probabilities, whose gradients vanish where it is sure: "
                  "flag_probabilities (attack what comes before the softmax)"});
  EXPECT_EQ(attack_doubts(flagged(kFlagZeroGradients, true)),
            Lines{"some pictures have no gradient: flag_zero_gradients (believe attacks without "
                  "gradients more: --attack square,spsa)"});
  EXPECT_EQ(attack_doubts(flagged(kFlagSquareBeatsGradients, true)),
            Lines{"a search without gradients broke pictures that gradients had not: "
                  "flag_square_beats_gradients (search longer: --set "
                  "auto-attack.square.queries=20000)"});
  EXPECT_EQ(attack_doubts(flagged(kSkippedStages, std::string("apgd-t"))),
            Lines{"apgd-t was skipped, the model has too few classes for it: skipped_stages (the "
                  "other attacks are all there is)"});
  EXPECT_EQ(attack_doubts(flagged(kFlagFewClasses, true)), Lines{});
  EXPECT_EQ(attack_remarks(flagged(kFlagFewClasses, true)),
            Lines{"there are fewer classes than apgd-t has targets, it led to each of them: "
                  "flag_few_classes (nothing is lost)"});
  EXPECT_EQ(attack_remarks(flagged(kFlagFewClasses, false)), Lines{});
}

TEST(AttackFlags, TheVersionForRandomModelsIsNotDoubtedForTheirRandomness) {
  Record record = flagged(kFlagRandomised, true);
  record.labels["attack_options"] = std::string("version=\"rand\" apgd.steps=2");
  EXPECT_EQ(attack_doubts(record), Lines{});
  record.labels[kFlagZeroGradients] = true;
  EXPECT_EQ(attack_doubts(record).size(), 1U);
}

}  // namespace
}  // namespace elliptical::measure
