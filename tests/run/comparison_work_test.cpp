// SPDX-License-Identifier: MIT
//
// What a comparison does is what the task of its recipes declares, unless it is told otherwise.
#include "elliptical/run/comparison_work.h"

#include <gtest/gtest.h>

#include "elliptical/base/errors.h"
#include "tests/support/error_message.h"
#include "tests/support/temporary_folder.h"

namespace elliptical::run {
namespace {

using Lines = std::vector<std::string>;
using test::error_message;

class ComparisonWorkTest : public ::testing::Test {
 protected:
  ComparisonWorkTest() {
    folder_.write("text.toml",
                  "[task]\nname = \"language_model\"\n[task.data]\nname = \"small-language\"\n");
    folder_.write("pictures.toml",
                  "[task]\nname = \"classify_image\"\n[task.data]\nname = \"small-pictures\"\n");
  }
  ComparisonWork plan(const char* recipe, WorkRequest request) {
    request.recipes = {{.recipe = folder_.path() / recipe}};
    request.folder = folder_.path() / "runs";
    request.seeds = "1";
    request.controls = "none";
    return plan_work(request);
  }
  std::string refusal(const char* recipe, const WorkRequest& request) {
    return error_message<UsageError>([&] { plan(recipe, request); });
  }

  const test::TemporaryFolder folder_;
};

TEST_F(ComparisonWorkTest, OfTextIsTheUsual) {
  const ComparisonWork work = plan("text.toml", {});
  EXPECT_EQ(work.plan.size(), 2U) << "softmax joins";
  EXPECT_EQ(work.split, "test");
  EXPECT_EQ(work.method, "block");
  ASSERT_EQ(work.damages.size(), 1U);
  EXPECT_EQ(work.damages[0].perturbation, "word_swap");
  EXPECT_EQ(work.damages[0].assignments, Lines({"swap_rate=0.025"}));
  EXPECT_TRUE(work.attacks.cases.empty());
  EXPECT_EQ(work.num_eval_units, 0) << "the cost of blocks needs no tokens";
}

TEST_F(ComparisonWorkTest, OfTextIsWhatWasAskedFor) {
  const ComparisonWork work =
      plan("text.toml", {.split = "valid", .method = "sliding", .damage = {{"swap", "0"}}});
  EXPECT_EQ(work.split, "valid");
  EXPECT_EQ(work.method, "sliding");
  EXPECT_TRUE(work.damages.empty());
  EXPECT_GT(work.num_eval_units, 0);
}

TEST_F(ComparisonWorkTest, OfPicturesHasAttacksAndNoMethod) {
  const ComparisonWork work = plan("pictures.toml", {.attacks = "fgsm,pgd", .num_pictures = 8});
  EXPECT_EQ(work.method, "");
  EXPECT_EQ(work.num_pictures, 8);
  ASSERT_EQ(work.attacks.cases.size(), 2U);
  EXPECT_EQ(work.attacks.cases[1].eps, parse_eps(kUsualEps));
  ASSERT_EQ(work.damages.size(), 1U);
  EXPECT_EQ(work.damages[0].kind, "gaussian_noise");
}

TEST_F(ComparisonWorkTest, WhatTheTaskCanNotIsRefused) {
  const std::string of_text =
      " needs recipes of classify_image, these are of language_model (a text is damaged by: "
      "--swap 0.025)";
  EXPECT_EQ(refusal("text.toml", {.attacks = "pgd"}), "compare: --attack" + of_text);
  EXPECT_EQ(refusal("text.toml", {.num_pictures = 9}), "compare: --pictures" + of_text);
  EXPECT_EQ(refusal("pictures.toml", {.method = "sliding"}),
            "compare: --method needs recipes of language_model, these are of classify_image "
            "(leave it out)");
}

}  // namespace
}  // namespace elliptical::run
