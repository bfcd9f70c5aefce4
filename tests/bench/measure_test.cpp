// SPDX-License-Identifier: MIT
#include "bench/measure.h"

#include <gtest/gtest.h>

#include "elliptical/base/errors.h"

namespace elliptical::bench {
namespace {

/// Takes the times it is told and notes its turns in a common diary.
class Scripted : public Contestant {
 public:
  Scripted(std::string name, std::vector<double> seconds, std::string* diary)
      : name_(std::move(name)), seconds_(std::move(seconds)), diary_(diary) {}

  std::string name() const override { return name_; }
  bool with_metric() const override { return true; }
  std::string refusal(Pass) const override { return ""; }
  Results results(Pass) override { return {}; }
  double time(Pass) override {
    *diary_ += name_;
    return seconds_[calls_++ % seconds_.size()];
  }

 private:
  std::string name_;
  std::vector<double> seconds_;
  std::string* diary_;
  size_t calls_ = 0;
};

TEST(Measure, ContestantsTakeTurnsAfterTwoWarmUpRounds) {
  std::string diary;
  Scripted a("a", {1}, &diary), b("b", {1}, &diary);
  measure({&a, &b}, Pass::kForward, {.repeats = 3, .min_time = 0});
  EXPECT_EQ(diary, "ababababab");
}

TEST(Measure, LeavesWarmUpOutAndGivesMinimumAndMedian) {
  std::string diary;
  Scripted a("a", {100, 0.001, 5, 2, 9, 4}, &diary);
  const Timing timing = measure({&a}, Pass::kForward, {.repeats = 4, .min_time = 0})[0];
  EXPECT_EQ(timing.calls, 4);
  EXPECT_DOUBLE_EQ(timing.min, 2);
  EXPECT_DOUBLE_EQ(timing.median, 4.5);
}

TEST(TakeTurns, RunsRoundsAndLeavesWarmUpOut) {
  std::string diary, shown;
  double next = 0;
  const auto timings = take_turns(2,
                                  {.warm_up = 1,
                                   .repeats = 3,
                                   .what = "steps",
                                   .progress =
                                       [&](size_t done, size_t total, const std::string& what) {
                                         shown += std::to_string(done) + "/" +
                                                  std::to_string(total) + " " + what + ", ";
                                       }},
                                  [&](size_t i) {
                                    diary += i == 0 ? "a" : "b";
                                    return next++;
                                  });
  EXPECT_EQ(diary, "abababab");
  EXPECT_EQ(shown, "0/4 steps, 1/4 steps, 2/4 steps, 3/4 steps, 4/4 steps, ");
  ASSERT_EQ(timings.size(), 2u);
  EXPECT_EQ(timings[0].calls, 3);
  EXPECT_DOUBLE_EQ(timings[0].min, 2);  // of 2, 4, 6
  EXPECT_DOUBLE_EQ(timings[1].median, 5);
}

TEST(Measure, GoesOnUntilTheTimeIsUsed) {
  std::string diary;
  Scripted a("a", {0.25}, &diary);
  EXPECT_EQ(measure({&a}, Pass::kForward, {.repeats = 2, .min_time = 2})[0].calls, 8);
}

TEST(Measure, EndsAtMaxRepeats) {
  std::string diary;
  Scripted a("a", {1e-9}, &diary);
  const MeasureOptions options{.repeats = 2, .min_time = 2, .max_repeats = 5};
  EXPECT_EQ(measure({&a}, Pass::kForward, options)[0].calls, 5);
}

TEST(Compare, GivesTheTargetOnlyToTheRival) {
  const TimedCase c{self_attention(1, 2, 9, 8), 1.5};
  const auto rows =
      compare(c, Pass::kForward, {"unfused", "sdpa"}, 1, {.repeats = 1, .min_time = 0});
  ASSERT_EQ(rows.size(), 2);
  EXPECT_EQ(rows[0].must(), 0);
  EXPECT_EQ(rows[1].must(), 1.5);
  for (const Comparison& row : rows) {
    EXPECT_GT(row.ratio_min(), 0) << row.peer;
    EXPECT_EQ(row.skipped, "") << row.peer;
  }
}

TEST(Compare, RefusesUnknownPeers) {
  const Problem problem(self_attention(1, 1, 2, 2));
  try {
    make_peer("sdpo", problem, 1);
    FAIL() << "accepted";
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(), "peer: unknown \"sdpo\", did you mean \"sdpa\"?");
  }
}

}  // namespace
}  // namespace elliptical::bench
