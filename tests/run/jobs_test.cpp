// SPDX-License-Identifier: MIT
#include "elliptical/run/jobs.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "elliptical/base/errors.h"
#include "elliptical/run/signals.h"

namespace elliptical::run {
namespace {

using std::chrono::milliseconds;

/// All events until so many jobs have ended.
std::vector<JobEvent> drain(Jobs& jobs, size_t num_jobs = 1) {
  std::vector<JobEvent> all;
  while (num_jobs > 0) {
    for (JobEvent& event : jobs.wait(milliseconds(1000))) {
      if (event.status) --num_jobs;
      all.push_back(std::move(event));
    }
  }
  return all;
}

TEST(Jobs, ReportWhatTheyDo) {
  Jobs jobs;
  jobs.start(7, [](const LoopHooks& hooks) {
    hooks.say("line with\na break and \"quotes\"");
    hooks.describe(
        "text: b\xC3\xBC"
        "cher");
    hooks.show({.phase = "train",
                .done = 3,
                .total = 3,
                .loss = 2.5,
                .units_per_second = 100,
                .seconds_left = 4});
  });
  const std::vector<JobEvent> events = drain(jobs);
  ASSERT_EQ(events.size(), 4);
  EXPECT_EQ(events[0].job, 7);
  EXPECT_EQ(events[0].notice, "line with\na break and \"quotes\"");
  EXPECT_EQ(events[1].data,
            "text: b\xC3\xBC"
            "cher");
  EXPECT_EQ(events[1].notice, "");
  ASSERT_TRUE(events[2].progress);
  EXPECT_EQ(events[2].progress->done, 3);
  EXPECT_EQ(events[2].progress->loss, 2.5);
  EXPECT_EQ(events[2].progress->seconds_left, 4);
  EXPECT_EQ(events[3].status, 0);
}

TEST(Jobs, ErrorsKeepTextAndStatus) {
  Jobs jobs;
  jobs.start(0, [](const LoopHooks&) { throw RunError("run: broken"); });
  jobs.start(1, [](const LoopHooks&) { throw ConfigError("recipe: wrong"); });
  jobs.start(2, [](const LoopHooks&) { throw SetupError("data: missing"); });
  jobs.start(3, [](const LoopHooks&) { throw Interrupted("stopped", SIGTERM); });
  jobs.start(4, [](const LoopHooks&) { raise(SIGKILL); });
  std::map<size_t, JobEvent> last;
  for (const JobEvent& event : drain(jobs, 5)) last[event.job] = event;
  EXPECT_EQ(last[0].error, "run: broken");
  EXPECT_EQ(last[0].status, 1);
  EXPECT_EQ(last[1].status, 2);
  EXPECT_EQ(last[2].status, 3);
  EXPECT_EQ(last[3].status, 143);
  EXPECT_EQ(last[4].status, 137);
  EXPECT_EQ(last[4].error,
            "ended by SIGKILL, which the system sends when memory runs out (fewer --jobs, then the "
            "same command again)");
}

TEST(Jobs, AreAskedToStop) {
  Jobs jobs;
  jobs.start(0, [](const LoopHooks& hooks) {
    const SignalGuard signals;
    hooks.say("ready");
    while (stop_signal() == 0) usleep(1000);
    throw Interrupted("saved", stop_signal());
  });
  while (jobs.wait(milliseconds(1000)).empty()) continue;
  jobs.ask_to_stop();
  const std::vector<JobEvent> events = drain(jobs);
  ASSERT_EQ(events.size(), 1);
  EXPECT_EQ(events[0].error, "saved");
  EXPECT_EQ(events[0].status, 143);
}

TEST(Jobs, EndWithTheirOwner) {
  // Pipes tell when a process is gone: their end closes with it.
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  {
    Jobs jobs;
    jobs.start(0, [&](const LoopHooks& hooks) {
      hooks.say("ready");
      while (true) pause();
    });
    while (jobs.wait(milliseconds(1000)).empty()) continue;
  }
  close(ends[1]);
  char byte;
  EXPECT_EQ(read(ends[0], &byte, 1), 0);
  close(ends[0]);
}

TEST(Jobs, P1DieWithAKilledParent) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t parent = fork();
  if (parent == 0) {
    Jobs jobs;
    jobs.start(0, [&](const LoopHooks& hooks) {
      hooks.say("ready");
      while (true) pause();
    });
    while (jobs.wait(milliseconds(1000)).empty()) continue;
    raise(SIGKILL);
  }
  close(ends[1]);
  char byte;
  EXPECT_EQ(read(ends[0], &byte, 1), 0);  // comes back only when both are gone
  close(ends[0]);
}

}  // namespace
}  // namespace elliptical::run
