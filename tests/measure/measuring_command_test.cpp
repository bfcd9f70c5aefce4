// SPDX-License-Identifier: MIT
//
// A command that is advised must measure the same thing: whatever a record or circumstances say
// that is neither usual nor as in training is in it.
#include "elliptical/measure/measuring_command.h"

#include <gtest/gtest.h>

#include "tests/measure/made_record.h"

namespace elliptical::measure {
namespace {

/// For the circumstances of a record, of a run that was trained with a window of 64.
std::string advised(const Record& record, const TaskMeasures& measures) {
  return measuring_command(
      *circumstances_of(record, measures), measures,
      {.folder = "a", .trained = {{"task.model.window", "64"}, {"task.data.name", "d"}}});
}

TEST(MeasuringCommand, HasNothingThatIsUsual) {
  const Record swapped = record_of({{"columns", int64_t{10}},
                                    {"method", std::string("block")},
                                    {"perturbation", std::string("word_swap")},
                                    {"profile", std::string("strict")},
                                    {"swap_rate", 0.025},
                                    {"swap_seed", int64_t{1}},
                                    {"swap_unit", std::string("line")},
                                    {"window", int64_t{64}}});
  EXPECT_EQ(advised(swapped, kText), "elliptical eval a --split test --swap 0.025 --set blocks=50");
}

TEST(MeasuringCommand, OfTextHasWhatIsUnusual) {
  const Record swapped = record_of({{"columns", int64_t{4}},
                                    {"method", std::string("stream")},
                                    {"perturbation", std::string("word_swap")},
                                    {"profile", std::string("published")},
                                    {"swap_rate", 0.1},
                                    {"swap_seed", int64_t{7}},
                                    {"swap_unit", std::string("text")},
                                    {"window", int64_t{32}}});
  EXPECT_EQ(advised(swapped, kText),
            "elliptical eval a --split test --swap 0.1 --method stream --set columns=4 --set "
            "swap_profile=published --set swap_seed=7 --set swap_unit=text --set window=32 --set "
            "blocks=50");
  const Record sliding = record_of(
      {{"method", std::string("sliding")}, {"stride", int64_t{8}}, {"window", int64_t{64}}});
  EXPECT_EQ(advised(sliding, kText),
            "elliptical eval a --split test --method sliding --set stride=8 --set blocks=50");
}

TEST(MeasuringCommand, OfPicturesHasWhatIsUnusual) {
  const Record foggy = record_of({{"corruption", std::string("fog")},
                                  {"corruption_jpeg", true},
                                  {"corruption_seed", int64_t{3}},
                                  {"data", std::string("other pictures")},
                                  {"max_pictures", int64_t{40}},
                                  {"perturbation", std::string("corruption")},
                                  {"severity", int64_t{0}},
                                  {"subset", std::string("balanced")}});
  EXPECT_EQ(advised(foggy, kPictures),
            "elliptical eval a --split test --corrupt fog --severity 0 --set corruption_seed=3 "
            "--set corruption_jpeg=true --set max_pictures=40 --set 'data=other pictures' --set "
            "blocks=50");
}

// Nothing is said about options of a run that is not known.
TEST(MeasuringCommand, OfAnUnknownRunSaysNothingOfItsTraining) {
  const Record clean = record_of({{"method", std::string("block")}, {"window", int64_t{32}}});
  EXPECT_EQ(measuring_command(*circumstances_of(clean, kText), kText, {.folder = "RUN"}),
            "elliptical eval RUN --split test --set blocks=50");
}

TEST(MeasuringCommand, OfAttacks) {
  Circumstances c;
  c.split = "test";
  c.condition = Condition::kAttacked;
  c.attack = {.name = "individual-mean",
              .eps = 0.1,
              .profile = "published",
              .metric_gradient = "detached",
              .seed = 3};
  EXPECT_EQ(
      measuring_command(c, kPictures, {.folder = "my runs/a"}),
      "elliptical attack 'my runs/a' --attack apgd-ce,apgd-t,fab-t,square --eps 0.1 --profile "
      "published --seed 3 --split test --eval-set blocks=50");
}

/// A record is measured again with its weights, and nothing more is recorded.
TEST(MeasuringCommand, OfARecordNamesItsWeights) {
  Record record = record_of({{"attack", std::string("pgd")},
                             {"attack_options", std::string("steps=7 step_ratio=0.5")},
                             {"eps", 2.0 / 255},
                             {"metric_gradient", std::string("through")},
                             {"pictures_total", int64_t{8}},
                             {"profile", std::string("strict")},
                             {"source", std::string("attack")},
                             {"step", int64_t{500}},
                             {"weights", std::string("ema")}});
  EXPECT_EQ(measuring_command(record, kPictures, {.folder = "a"}),
            "elliptical attack a --attack pgd --eps 2/255 --set pgd.steps=7 --set "
            "pgd.step_ratio=0.5 --split test --weights ema --step 500");
  // Of damaged pictures, which are no column of a comparison.
  record.labels["perturbation"] = std::string("corruption");
  record.labels["corruption"] = std::string("fog");
  record.labels["severity"] = int64_t{3};
  record.labels.erase("pictures_total");  // as earlier versions: perhaps the first pictures
  EXPECT_EQ(measuring_command(record, kPictures, {.folder = "a"}),
            "elliptical attack a --attack pgd --eps 2/255 --set pgd.steps=7 --set "
            "pgd.step_ratio=0.5 --split test --eval-set corrupt=fog --eval-set severity=3 "
            "--eval-set max_pictures=8 --weights ema --step 500");
}

}  // namespace
}  // namespace elliptical::measure
