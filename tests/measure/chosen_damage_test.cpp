// SPDX-License-Identifier: MIT
#include "elliptical/measure/chosen_damage.h"

#include <gtest/gtest.h>

#include <array>

#include "elliptical/tasks/classify_image_measures.h"
#include "elliptical/tasks/language_model_measures.h"

namespace elliptical::measure::chosen_damage_test {
namespace {

using Lines = std::vector<std::string>;

/// A task with two perturbations, of which the second is done where somebody asks for it.
constexpr std::array kTwo = {tasks::kLanguageModelPerturbations[0],
                             Perturbation{.name = "shuffle",
                                          .damaged = "shuffled",
                                          .strength = {.flag = "shuffle",
                                                       .option = "shuffle_rate",
                                                       .label = "shuffle_rate",
                                                       .kind = Parameter::Kind::kNumber,
                                                       .usual = "0.5",
                                                       .high = 1,
                                                       .help = "",
                                                       .eval_help = "",
                                                       .off = "0"},
                                          .details = {},
                                          .words = tasks::word_swap_words}};
constexpr TaskMeasures kToy{.task = "toy", .data = "text", .perturbations = kTwo};

TEST(ChosenDamage, IsTheUsualUnlessSaid) {
  const Perturbation& corruption = *tasks::kClassifyImageMeasures.usual_perturbation();
  auto chosen = chosen_damage(corruption, {});
  ASSERT_TRUE(chosen);
  EXPECT_EQ(chosen->perturbation, "corruption");
  EXPECT_EQ(chosen->kind, "gaussian_noise");
  EXPECT_EQ(chosen->strength, 3);
  EXPECT_EQ(chosen->assignments, Lines({"corrupt=gaussian_noise", "severity=3"}));
  chosen = chosen_damage(corruption, {{"corrupt", "fog,snow"}, {"severity", "0"}});
  ASSERT_TRUE(chosen);
  EXPECT_EQ(chosen->assignments, Lines({"corrupt=fog,snow", "severity=0"}));
}

TEST(ChosenDamage, CanBeTurnedOff) {
  EXPECT_FALSE(chosen_damage(*tasks::kClassifyImageMeasures.usual_perturbation(),
                             {{"corrupt", "none"}, {"severity", "3"}}));
  EXPECT_FALSE(
      chosen_damage(*tasks::kLanguageModelMeasures.usual_perturbation(), {{"swap", "0.0"}}));
}

TEST(ChosenDamages, AreTheFirstAndThoseAskedFor) {
  const auto names = [](const GivenDamage& given) {
    Lines result;
    for (const ChosenDamage& chosen : chosen_damages(kToy, given)) {
      result.push_back(chosen.perturbation);
    }
    return result;
  };
  EXPECT_EQ(names({}), Lines({"word_swap"}));
  EXPECT_EQ(names({{"shuffle", "0.1"}}), Lines({"word_swap", "shuffle"}));
  EXPECT_EQ(names({{"swap", "0"}, {"shuffle", "0.1"}}), Lines({"shuffle"}));
  EXPECT_EQ(names({{"swap", "0"}, {"shuffle", "0"}}), Lines());
  EXPECT_TRUE(chosen_damages(kNoMeasures, {{"swap", "1"}}).empty());
}

}  // namespace
}  // namespace elliptical::measure::chosen_damage_test
