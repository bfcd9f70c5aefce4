// SPDX-License-Identifier: MIT
//
// Every task once, whoever comes when; and nobody who is late is waited for.
#include "elliptical/kernels/task_shares.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <thread>
#include <utility>
#include <vector>

namespace elliptical::kernels {
namespace {

constexpr int64_t kNumTasks[] = {0, 1, 2, 3, 7, 8, 9, 31, 64, 1000};

TEST(TaskShares, EachTaskOnceWhateverTheOrder) {
  for (const int64_t num_tasks : kNumTasks) {
    for (const int64_t num_workers : {1, 2, 3, 8}) {
      for (int64_t first = 0; first < num_workers; ++first) {
        TaskShares shares(num_tasks, num_workers);
        std::vector<int> runs(num_tasks);
        for (int64_t i = 0; i < shares.num_shares(); ++i) {
          shares.work((first + i) % shares.num_shares(), [&](int64_t begin, int64_t end) {
            ASSERT_LT(begin, end);
            for (int64_t task = begin; task < end; ++task) ++runs[task];
          });
        }
        ASSERT_EQ(runs, std::vector<int>(num_tasks, 1)) << num_tasks << ", " << num_workers;
      }
    }
  }
}

TEST(TaskShares, EachTaskOnceOnThreads) {
  for (const int64_t num_tasks : kNumTasks) {
    for (int repeat = 0; repeat < 20; ++repeat) {
      TaskShares shares(num_tasks, 8);
      std::vector<std::atomic<int>> runs(num_tasks);
      std::latch start(shares.num_shares());
      std::vector<std::thread> threads;
      for (int64_t worker = 0; worker < shares.num_shares(); ++worker) {
        threads.emplace_back([&, worker] {
          start.arrive_and_wait();
          shares.work(worker, [&](int64_t begin, int64_t end) {
            for (int64_t task = begin; task < end; ++task) ++runs[task];
          });
        });
      }
      for (std::thread& thread : threads) thread.join();
      for (int64_t task = 0; task < num_tasks; ++task) ASSERT_EQ(runs[task], 1) << task;
    }
  }
}

TEST(TaskShares, AWorkerThatIsHeldUpKeepsOnePiece) {
  TaskShares shares(64, 2);
  int64_t of_the_other = 0, held = 0;
  shares.work(0, [&](int64_t begin, int64_t end) {
    if (held > 0) return;
    // Within its first piece the other worker begins and ends.
    held = end - begin;
    shares.work(1, [&](int64_t b, int64_t e) { of_the_other += e - b; });
  });
  EXPECT_EQ(held, 8);
  EXPECT_EQ(of_the_other, 56) << "its own share and all that the first had not begun";
}

TEST(TaskShares, InQuietTimesEachWorksOnItsOwn) {
  TaskShares shares(64, 2);
  std::vector<std::pair<int64_t, int64_t>> ranges;
  shares.work(1, [&](int64_t begin, int64_t end) { ranges.emplace_back(begin, end); });
  ASSERT_EQ(ranges.size(), 8);
  EXPECT_EQ(ranges.front(), std::pair(int64_t{32}, int64_t{40}));
  EXPECT_EQ(ranges[3], std::pair(int64_t{56}, int64_t{64}));
}

}  // namespace
}  // namespace elliptical::kernels
