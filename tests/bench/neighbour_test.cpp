// SPDX-License-Identifier: MIT
#include "bench/neighbour.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <cerrno>
#include <chrono>
#include <fstream>
#include <string>
#include <thread>

namespace elliptical::bench {
namespace {

/// "R", "T", ... of /proc/PID/stat.
std::string state_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string number, name, state;
  file >> number >> name >> state;
  return state;
}

TEST(Neighbour, IsBusyWhenItIsLetAndGoneAfterwards) {
  pid_t pid = 0;
  {
    Neighbour neighbour;
    pid = neighbour.pid();
    EXPECT_EQ(state_of(pid), "T");
    neighbour.set_busy(true);
    EXPECT_EQ(state_of(pid), "R");
    neighbour.set_busy(false);
    EXPECT_EQ(state_of(pid), "T");
  }
  EXPECT_EQ(kill(pid, 0), -1);
  EXPECT_EQ(errno, ESRCH);
}

TEST(Neighbour, BothAreMeasuredInBothWays) {
  const auto results = measure_neighbour(tiny_case(), {.B = 1, .H = 2, .N = 32, .D = 8}, 3);
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0].what, "training");
  EXPECT_EQ(results[1].what, "attention");
  for (const NeighbourResult& result : results) {
    for (const Timing& timing : {result.quiet, result.beside}) {
      EXPECT_EQ(timing.calls, 3);
      EXPECT_GT(timing.min, 0);
      EXPECT_GE(timing.median, timing.min);
    }
  }
}

TEST(Neighbour, RatiosAreOfSpeeds) {
  const NeighbourResult result{
      .what = "", .quiet = {.min = 1, .median = 2}, .beside = {.min = 4, .median = 4}};
  EXPECT_DOUBLE_EQ(result.ratio_min(), 0.25);
  EXPECT_DOUBLE_EQ(result.ratio_median(), 0.5);
}

}  // namespace
}  // namespace elliptical::bench
