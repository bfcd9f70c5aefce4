// SPDX-License-Identifier: MIT
#include "tests/kernels/threads.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "tests/kernels/random.h"

namespace elliptical::kernels::test {
namespace {

using Range = std::pair<int64_t, int64_t>;

void run_on_threads(int num_threads, const std::vector<Range>& ranges, const TaskRange& body) {
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < ranges.size(); i = next++) body(ranges[i].first, ranges[i].second);
  };
  std::vector<std::thread> threads;
  for (int i = 1; i < num_threads; ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

ParallelFor shuffled_threads(int num_threads, uint64_t seed) {
  const auto random = std::make_shared<Random>(seed);
  return [num_threads, random](int64_t num_tasks, const TaskRange& body) {
    std::vector<Range> ranges;
    for (int64_t begin = 0; begin < num_tasks;) {
      const int64_t end = std::min(num_tasks, begin + 1 + random->below(3));
      ranges.emplace_back(begin, end);
      begin = end;
    }
    for (size_t left = ranges.size(); left > 1; --left)
      std::swap(ranges[left - 1], ranges[random->below(static_cast<int64_t>(left))]);
    run_on_threads(num_threads, ranges, body);
  };
}

ParallelFor even_threads(int num_threads) {
  return [num_threads](int64_t num_tasks, const TaskRange& body) {
    std::vector<Range> ranges;
    for (int64_t i = 0; i < num_threads; ++i) {
      const Range range(num_tasks * i / num_threads, num_tasks * (i + 1) / num_threads);
      if (range.first < range.second) ranges.push_back(range);
    }
    run_on_threads(num_threads, ranges, body);
  };
}

}  // namespace elliptical::kernels::test
