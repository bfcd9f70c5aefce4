// SPDX-License-Identifier: MIT
#include "elliptical/data/image/loader.h"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <set>

#include "elliptical/base/errors.h"
#include "elliptical/data/image/small_pictures.h"
#include "tests/support/error_message.h"

namespace elliptical::data {
namespace {

using test::error_message;

std::vector<Image> read_all(int64_t workers, int64_t ahead) {
  const SmallPictures set(Split::kTrain, {.side = 16});
  BatchLoader<Image> loader([&](int64_t number) { return set.get(number * 7 % set.size()); },
                            {.workers = workers, .ahead = ahead});
  std::vector<Image> images;
  for (int64_t i = 5; i < 60; ++i) images.push_back(loader.get(i));
  return images;
}

TEST(BatchLoader, GivesTheSameForAnyNumberOfWorkers) {
  const std::vector<Image> expected = read_all(0, 1);
  for (const int64_t workers : {1, 2, 5}) {
    for (const int64_t ahead : {1, 3, 100}) EXPECT_EQ(read_all(workers, ahead), expected);
  }
}

TEST(BatchLoader, AnyNumberMayBeAskedFor) {
  BatchLoader<int64_t> loader([](int64_t number) { return number * number; }, {.workers = 3});
  for (const int64_t number : {3, 4, 9, 2, 2, 3, 1000, 1001, 0}) {
    EXPECT_EQ(loader.get(number), number * number);
  }
}

TEST(BatchLoader, ErrorsComeWithTheirBatch) {
  const auto make = [](int64_t number) {
    if (number == 3) throw DataError("3.jpg: is broken");
    return number;
  };
  for (const int64_t workers : {0, 1, 4}) {
    BatchLoader<int64_t> loader(make, {.workers = workers});
    for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(loader.get(i), i);
    EXPECT_EQ(error_message<DataError>([&] { loader.get(3); }), "3.jpg: is broken");
    EXPECT_EQ(loader.get(4), 4);
    EXPECT_EQ(error_message<DataError>([&] { loader.get(3); }), "3.jpg: is broken");
  }
}

TEST(BatchLoader, MakesAtMostSoManyAhead) {
  std::mutex mutex;
  std::set<int64_t> begun;
  {
    BatchLoader<int64_t> loader(
        [&](int64_t number) {
          const std::lock_guard lock(mutex);
          begun.insert(number);
          return number;
        },
        {.workers = 4, .ahead = 3, .end = 12});
    EXPECT_TRUE(begun.empty()) << "nothing before the first number is known";
    for (int64_t i = 0; i < 10; ++i) {
      EXPECT_EQ(loader.get(i), i);
      const std::lock_guard lock(mutex);
      EXPECT_LE(*begun.rbegin(), i + 3);
    }
  }
  EXPECT_LT(*begun.rbegin(), 12);
}

TEST(BatchLoader, MakesTheLastBatchEvenBeyondTheEnd) {
  BatchLoader<int64_t> loader([](int64_t number) { return number; }, {.workers = 2, .end = 5});
  EXPECT_EQ(loader.get(5), 5);
  EXPECT_EQ(loader.get(6), 6);
}

TEST(BatchLoader, WorkersRunAtTheSameTime) {
  // Each batch waits for two others: with fewer threads this would never end.
  std::barrier meeting(3);
  BatchLoader<int64_t> loader(
      [&](int64_t number) {
        meeting.arrive_and_wait();
        return number;
      },
      {.workers = 3, .ahead = 3, .end = 3});
  for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(loader.get(i), i);
}

TEST(BatchLoader, EndsWhileBatchesAreBeingMade) {
  for (int64_t round = 0; round < 50; ++round) {
    std::atomic<int64_t> inside = 0;
    {
      BatchLoader<int64_t> loader(
          [&](int64_t number) {
            ++inside;
            std::this_thread::yield();
            --inside;
            return number;
          },
          {.workers = 3, .ahead = 8});
      if (round % 2 == 0) loader.get(0);
    }
    EXPECT_EQ(inside, 0) << "the destructor waits";
  }
}

TEST(BatchLoader, MovesBatches) {
  BatchLoader<std::unique_ptr<int64_t>> loader(
      [](int64_t number) { return std::make_unique<int64_t>(number); });
  EXPECT_EQ(*loader.get(7), 7);
}

}  // namespace
}  // namespace elliptical::data
