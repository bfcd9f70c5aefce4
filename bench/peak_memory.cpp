// SPDX-License-Identifier: MIT
#include "bench/peak_memory.h"

#include <c10/core/Allocator.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <mutex>
#include <unordered_map>

namespace elliptical::bench {
namespace {

/// Where torch's profiler would stand: the allocator tells it of every allocation and release by
/// this thread, backward passes included. It has sizes of its own, because those that torch keeps
/// outlive a measurement and may be of an earlier block at the same address.
class Counter : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void* block, int64_t bytes, size_t, size_t, c10::Device) override {
    const std::scoped_lock lock(mutex_);
    if (bytes > 0) {
      sizes_[block] = bytes;
      current_ += bytes;
      peak_ = std::max(peak_, current_);
    } else if (const auto known = sizes_.extract(block)) {
      current_ -= known.mapped();
    }
  }
  bool memoryProfilingEnabled() const override { return true; }
  int64_t peak() const { return peak_; }

 private:
  std::mutex mutex_;
  std::unordered_map<void*, int64_t> sizes_;  ///< of blocks that are held
  int64_t current_ = 0, peak_ = 0;
};

}  // namespace

int64_t peak_memory(const std::function<void()>& work) {
  const auto counter = std::make_shared<Counter>();
  {
    const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, counter);
    work();
  }
  return counter->peak();
}

double growth_exponent(const std::vector<MemoryPoint>& points) {
  const auto x = [](const MemoryPoint& p) { return std::log(static_cast<double>(p.num_tokens)); };
  const auto y = [](const MemoryPoint& p) { return std::log(static_cast<double>(p.bytes)); };
  const auto count = static_cast<double>(points.size());
  double mean_x = 0, mean_y = 0, xx = 0, xy = 0;
  for (const MemoryPoint& p : points) {
    mean_x += x(p) / count;
    mean_y += y(p) / count;
  }
  for (const MemoryPoint& p : points) {
    xx += (x(p) - mean_x) * (x(p) - mean_x);
    xy += (x(p) - mean_x) * (y(p) - mean_y);
  }
  return xy / xx;
}

}  // namespace elliptical::bench
