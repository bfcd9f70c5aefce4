// SPDX-License-Identifier: MIT
#include "elliptical/run/attack_plan.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "elliptical/attack/apgd.h"
#include "elliptical/attack/pgd.h"
#include "elliptical/attack/spsa.h"
#include "elliptical/base/errors.h"
#include "elliptical/measure/circumstances.h"
#include "elliptical/run/attack_records.h"
#include "tests/support/error_message.h"
#include "tests/support/temporary_folder.h"

namespace elliptical::run {
namespace {

std::string refusal(const AttackWords& words) {
  try {
    make_attack_plan(words);
  } catch (const UsageError& error) {
    return error.what();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

TEST(AttackPlan, EpsMayBeAFraction) {
  EXPECT_EQ(parse_eps("1/255"), 1.0 / 255);
  EXPECT_EQ(parse_eps("0.01"), 0.01);
  EXPECT_EQ(parse_eps("0"), 0);
  EXPECT_EQ(parse_eps("1e-3"), 1e-3);
  for (const std::string text : {"", "-1/255", "1/-255", "nan", "inf", "1/0", "0/0", "1/255/2", "x",
                                 "1 /255", "1/", "/255", "0.01x"}) {
    EXPECT_EQ(
        test::error_message<UsageError>([&] { parse_eps(text); }),
        "--eps: must be a number or a fraction like 1/255, not negative, got \"" + text + "\"");
  }
}

TEST(AttackPlan, HasEveryCombination) {
  const AttackPlan plan =
      make_attack_plan({.attacks = "pgd,fgsm", .eps = "1/255,0.5", .metric_gradient = "both"});
  ASSERT_EQ(plan.cases.size(), 8);
  EXPECT_EQ(plan.cases[0].attack.name(), "pgd");
  EXPECT_EQ(plan.cases[0].eps, 1.0 / 255);
  EXPECT_TRUE(plan.cases[0].gradient_through_metric);
  EXPECT_FALSE(plan.cases[1].gradient_through_metric);
  EXPECT_EQ(plan.cases[2].eps, 0.5);
  EXPECT_EQ(plan.cases[4].attack.name(), "fgsm");
}

TEST(AttackPlan, ProfilesDifferWhereThePaperDoes) {
  const AttackWords words{.attacks = "spsa,apgd-ce", .eps = "0.1"};
  const AttackPlan strict = make_attack_plan(words);
  EXPECT_EQ(strict.cases[0].attack.get<attack::SpsaOptions>().point, attack::SpsaPoint::kCurrent);
  EXPECT_TRUE(strict.cases[1].attack.get<attack::ApgdOptions>().stop_when_broken);
  EXPECT_TRUE(strict.cases[0].gradient_through_metric);
  AttackWords as_released = words;
  as_released.profile = "published";
  const AttackPlan published = make_attack_plan(as_released);
  EXPECT_EQ(published.cases[0].attack.get<attack::SpsaOptions>().point,
            attack::SpsaPoint::kTwicePicture);
  EXPECT_FALSE(published.cases[1].attack.get<attack::ApgdOptions>().stop_when_broken);
  EXPECT_FALSE(published.cases[0].gradient_through_metric);
  as_released.assignments = {"spsa.point=current"};
  EXPECT_EQ(make_attack_plan(as_released).cases[0].attack.get<attack::SpsaOptions>().point,
            attack::SpsaPoint::kCurrent)
      << "what is asked for wins";
}

TEST(AttackPlan, OptionsBelongToAttacksByName) {
  const AttackPlan plan =
      make_attack_plan({.attacks = "fgsm,pgd", .eps = "0.1", .assignments = {"pgd.steps=7"}});
  EXPECT_EQ(plan.cases[1].attack.get<attack::PgdOptions>().steps, 7);
}

TEST(AttackPlan, MistakesAreNamed) {
  EXPECT_EQ(refusal({.attacks = "pgdd", .eps = "0.1"}),
            "--attack: unknown \"pgdd\", did you mean \"pgd\"? (run: elliptical list attacks)");
  EXPECT_EQ(refusal({.attacks = "pgd,", .eps = "0.1"}),
            "--attack: must be a list like a,b, got \"pgd,\"");
  EXPECT_EQ(refusal({.attacks = "pgd,fgsm,pgd", .eps = "0.1"}),
            "--attack: must name each once, got \"pgd\" twice");
  EXPECT_EQ(refusal({.attacks = "pgd", .eps = "8"}),
            "--eps: must be at most 1, the range of a pixel, got \"8\" (did you mean 8/255?)");
  EXPECT_EQ(refusal({.attacks = "pgd", .eps = "8", .profile = "published"}), "no error");
  EXPECT_EQ(refusal({.attacks = "pgd", .eps = "0.1", .assignments = {"pgd.stepps=7"}}),
            "--set pgd.stepps=7: unknown key \"pgd.stepps\", did you mean \"pgd.steps\"?");
}

TEST(AttackRecords, A3WhatIsThereIsNotAppendedAgain) {
  const test::TemporaryFolder folder;
  const auto path = folder.path() / "records.jsonl";
  const auto record = [](int64_t step) {
    return Record{.metric = "robust_accuracy", .value = 50, .count = 4, .labels = {{"step", step}}};
  };
  append_new_records(path, {record(1), record(2), record(1)});
  EXPECT_EQ(read_records(path).size(), 2U);
  const std::string two = folder.read("records.jsonl");
  append_new_records(path, {record(1), record(2)});
  EXPECT_EQ(folder.read("records.jsonl"), two);
  folder.write("records.jsonl", two + "damaged\n" + R"({"metric":"cut)");
  append_new_records(path, {record(2), record(3)});
  EXPECT_EQ(folder.read("records.jsonl"), two + "damaged\n" + to_json_line(record(3)) + "\n");
}

TEST(AttackPlan, ABudgetInWordsIsReadBack) {
  for (const double eps : {0.0, 1.0, 8.0 / 255, 8.0 / 255 * (1 + 1e-10), 0.05, 1e-7, 1.0 / 3}) {
    EXPECT_EQ(parse_eps(measure::eps_text(eps)), eps);
  }
}

}  // namespace
}  // namespace elliptical::run
