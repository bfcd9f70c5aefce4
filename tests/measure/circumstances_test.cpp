// SPDX-License-Identifier: MIT
#include "elliptical/measure/circumstances.h"

#include <gtest/gtest.h>

namespace elliptical::measure {
namespace {

TEST(Circumstances, CommandsThatMeasure) {
  Circumstances c{.split = "test",
                  .condition = Condition::kAttacked,
                  .attack = {.name = "individual-mean",
                             .eps = 0.1,
                             .profile = "published",
                             .metric_gradient = "detached",
                             .seed = 3}};
  EXPECT_EQ(
      measuring_command(c, "my runs/a"),
      "elliptical attack 'my runs/a' --attack apgd-ce,apgd-t,fab-t,square --eps 0.1 --profile "
      "published --seed 3 --split test --eval-set blocks=50");
  c = {.split = "valid", .condition = Condition::kDamaged, .num_pictures = 7, .corruption = "main"};
  EXPECT_EQ(
      measuring_command(c, "a"),
      "elliptical eval a --split valid --corrupt main --severity 0 --set max_pictures=7 --set "
      "blocks=50");
}

TEST(Circumstances, EpsIsAFractionWhereItIsOne) {
  EXPECT_EQ(eps_text(1.0 / 255), "1/255");
  EXPECT_EQ(eps_text(8.0 / 255 * (1 + 1e-10)), "8/255");
  EXPECT_EQ(eps_text(8.0 / 255 * (1 + 1e-8)), "0.03137");
  EXPECT_EQ(eps_text(0.01), "0.01");
  EXPECT_EQ(eps_text(0), "0");
}

}  // namespace
}  // namespace elliptical::measure
