// SPDX-License-Identifier: MIT
#include "elliptical/measure/circumstances.h"

#include <gtest/gtest.h>

#include "tests/measure/made_record.h"

namespace elliptical::measure {
namespace {

TEST(Circumstances, AreThoseThatTheTaskDeclares) {
  const auto clean = circumstances_of(record_of({}), kPictures);
  ASSERT_TRUE(clean);
  EXPECT_EQ(clean->condition, Condition::kClean);
  const Record fog = record_of({{"perturbation", std::string("corruption")},
                                {"corruption", std::string("fog")},
                                {"corruption_seed", int64_t{1}},
                                {"severity", int64_t{3}}});
  const auto damaged = circumstances_of(fog, kPictures);
  ASSERT_TRUE(damaged);
  EXPECT_EQ(damaged->condition, Condition::kDamaged);
  EXPECT_EQ(damaged->perturbation, "corruption");
  EXPECT_EQ(damaged->corruption, "fog");
  EXPECT_EQ(damaged->strength, 3);
  EXPECT_TRUE(is_usual_damage(*damaged));
  EXPECT_FALSE(circumstances_of(fog, kText)) << "a text has no fog";
  EXPECT_FALSE(circumstances_of(fog, kNoMeasures)) << "nothing is known of its task";
}

TEST(Circumstances, TellUnusualDamageApart) {
  const auto swapped = [](int64_t seed) {
    return *circumstances_of(record_of({{"perturbation", std::string("word_swap")},
                                        {"profile", std::string("strict")},
                                        {"swap_rate", 0.025},
                                        {"swap_seed", seed},
                                        {"swap_unit", std::string("line")}}),
                             kText);
  };
  EXPECT_EQ(swapped(1).strength, 0.025);
  EXPECT_TRUE(is_usual_damage(swapped(1)));
  EXPECT_FALSE(is_usual_damage(swapped(2)));
  EXPECT_NE(swapped(1), swapped(2));
  using Details = std::vector<std::pair<std::string, std::string>>;
  const Perturbation& swaps = *kText.usual_perturbation();
  EXPECT_EQ(damage_details(swapped(1), swaps), Details());
  EXPECT_EQ(damage_details(swapped(2), swaps), (Details{{"swap_seed", "2"}}));
}

TEST(Circumstances, OfAnAttackHaveItsPictures) {
  const Record record = record_of({{"attack", std::string("pgd")},
                                   {"eps", 0.1},
                                   {"profile", std::string("strict")},
                                   {"source", std::string("attack")}});
  const auto attacked = circumstances_of(record, kPictures);
  ASSERT_TRUE(attacked);
  EXPECT_EQ(attacked->condition, Condition::kAttacked);
  EXPECT_EQ(attacked->num_pictures, 8);
  EXPECT_EQ(attacked->attack, attack_of(record));
  EXPECT_EQ(attacked->attack.name, "pgd");
}

TEST(Circumstances, EpsIsAFractionWhereItIsOne) {
  EXPECT_EQ(eps_text(1.0 / 255), "1/255");
  EXPECT_EQ(eps_text(1), "255/255");
  EXPECT_EQ(eps_text(8.0 / 255), "8/255");
  EXPECT_EQ(eps_text(8.0 / 255 * (1 + 1e-10)), "0.0313725490227451") << "two budgets, two names";
  EXPECT_EQ(eps_text(0.01), "0.01");
  EXPECT_EQ(eps_text(0), "0");
}

}  // namespace
}  // namespace elliptical::measure
