// SPDX-License-Identifier: MIT
#include "elliptical/run/progress.h"

#include <gtest/gtest.h>

#include <cmath>

namespace elliptical::run {
namespace {

const Progress kHalf{
    .done = 400, .total = 1000, .loss = 5.1234, .units_per_second = 12345, .seconds_left = 3723};

TEST(Progress, FullLine) {
  EXPECT_EQ(
      progress_bar(kHalf, 120),
      "train  [########------------]   40% 400/1000  loss 5.123  12.3k tokens/s  ETA 1:02:03");
  EXPECT_EQ(progress_text(kHalf), "train:  40% 400/1000  loss 5.123  12.3k tokens/s  ETA 1:02:03");
}

TEST(Progress, NeverWiderThanTheTerminal) {
  for (int width = 0; width < 120; ++width) {
    EXPECT_LE(progress_bar(kHalf, width).size(), width);
  }
  EXPECT_EQ(progress_bar(kHalf, 40), "train   40% 400/1000  loss 5.123");
  EXPECT_EQ(progress_bar(kHalf, -3), "");
}

TEST(Progress, WithoutARateThereIsNoEta) {
  EXPECT_EQ(progress_text({.phase = "eval", .done = 0, .total = 3}), "eval:  0% 0/3");
}

TEST(Progress, NothingToDoIsDone) {
  EXPECT_EQ(progress_text({.done = 0, .total = 0}), "train:  100% 0/0");
}

TEST(Progress, NonFiniteLossIsShown) {
  EXPECT_NE(progress_text({.done = 1, .total = 2, .loss = NAN}).find("loss nan"),
            std::string::npos);
}

TEST(Progress, Durations) {
  EXPECT_EQ(duration_text(7.4), "0:07");
  EXPECT_EQ(duration_text(754), "12:34");
  EXPECT_EQ(duration_text(3 * 86400 + 4 * 3600 + 5 * 60 + 6), "3d 04:05:06");
  EXPECT_EQ(duration_text(NAN), "?");
  EXPECT_EQ(duration_text(-1), "?");
  EXPECT_EQ(duration_text(INFINITY), "?");
}

TEST(Progress, RatesHaveThreeDigits) {
  EXPECT_EQ(rate_text(0.5), "0.50");
  EXPECT_EQ(rate_text(12.34), "12.3");
  EXPECT_EQ(rate_text(999.6), "1.00k");
  EXPECT_EQ(rate_text(123456), "123k");
  EXPECT_EQ(rate_text(2.5e6), "2.50M");
}

}  // namespace
}  // namespace elliptical::run
