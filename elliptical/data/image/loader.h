// SPDX-License-Identifier: MIT
//
// Batches made ahead of their use: worker threads read, decode and augment the next few while the
// model computes. A batch is a function of its number alone, so what comes out does not depend on
// the number of workers, on timing, or on where reading starts:
//
//     const auto make = [&](int64_t number) { return make_batch(number); };
//     BatchLoader<Batch> loader(make, {.workers = 2});
//     for (int64_t step = first; step < last; ++step) use(loader.get(step));
//
// At most `ahead` batches exist that nobody asked for yet. A batch that can not be made is an
// exception of `get` for that batch, of the type and with the message it had in the worker. The
// function runs in several threads at once: what it reads must stand that (ImageSet::get does).
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace elliptical::data {

struct BatchLoaderOptions {
  int64_t workers = 2;  ///< threads; 0: batches are made when they are asked for
  int64_t ahead = 4;    ///< batches; at least 1
  int64_t end =
      std::numeric_limits<int64_t>::max();  ///< no batch from this number on is made ahead
};

template <class Batch>
class BatchLoader {
 public:
  using Make = std::function<Batch(int64_t number)>;

  explicit BatchLoader(Make make, const BatchLoaderOptions& options = {})
      : make_(std::move(make)), ahead_(std::max<int64_t>(options.ahead, 1)), end_(options.end) {
    for (int64_t i = 0; i < options.workers; ++i) workers_.emplace_back([this] { work(); });
  }

  /// Waits for batches that are being made; the others are not begun any more.
  ~BatchLoader() {
    {
      const std::lock_guard lock(mutex_);
      is_stopping_ = true;
    }
    room_.notify_all();
    workers_.clear();  // joins
  }
  BatchLoader(const BatchLoader&) = delete;
  BatchLoader& operator=(const BatchLoader&) = delete;

  /// Batch `number`. Numbers that follow each other are fast; any other number starts anew from
  /// there. One thread may call it.
  Batch get(int64_t number) {
    if (workers_.empty()) return make_(number);
    std::unique_lock lock(mutex_);
    if (number != wanted_) {
      wanted_ = next_ = number;
      finished_.clear();
      ++round_;
    }
    is_waiting_ = true;
    room_.notify_all();
    made_.wait(lock, [&] { return finished_.contains(number); });
    Result result = std::move(finished_.extract(number).mapped());
    wanted_ = number + 1;
    is_waiting_ = false;
    lock.unlock();
    room_.notify_all();
    if (result.error) std::rethrow_exception(result.error);
    return std::move(*result.batch);
  }

 private:
  struct Result {
    std::optional<Batch> batch;
    std::exception_ptr error;
  };

  /// Nothing is begun before the first `get` says where; from the end on, only what is asked for.
  bool has_room() const {
    const bool is_asked_for = is_waiting_ && next_ == wanted_;
    return wanted_ >= 0 && next_ - wanted_ < ahead_ && (next_ < end_ || is_asked_for);
  }

  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      room_.wait(lock, [&] { return is_stopping_ || has_room(); });
      if (is_stopping_) return;
      const int64_t number = next_++, round = round_;
      lock.unlock();
      Result result;
      try {
        result.batch.emplace(make_(number));
      } catch (...) {
        result.error = std::current_exception();
      }
      lock.lock();
      if (round != round_) continue;  // reading went on somewhere else meanwhile
      finished_.emplace(number, std::move(result));
      made_.notify_all();
    }
  }

  const Make make_;
  const int64_t ahead_, end_;
  std::mutex mutex_;
  std::condition_variable room_, made_;
  std::map<int64_t, Result> finished_;
  int64_t wanted_ = -1, next_ = 0;  ///< asked for next; begun next
  int64_t round_ = 0;               ///< counts the starts
  bool is_waiting_ = false;         ///< `get` waits for `wanted_`
  bool is_stopping_ = false;
  std::vector<std::jthread> workers_;  ///< last: they use everything above
};

}  // namespace elliptical::data
