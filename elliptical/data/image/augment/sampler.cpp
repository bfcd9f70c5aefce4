// SPDX-License-Identifier: MIT
#include "elliptical/data/image/augment/sampler.h"

#include <string>

#include "elliptical/base/distributions.h"
#include "elliptical/base/errors.h"

namespace elliptical::data {

EpochSampler::EpochSampler(int64_t num_pictures, int64_t batch_size, int64_t repeats, RandomKey key)
    : num_pictures_(num_pictures), batch_size_(batch_size), repeats_(repeats), key_(key) {
  if (batch_size < 1 || repeats < 1 || num_pictures < batch_size) {
    throw UsageError(
        "sampler: a batch must have 1 to as many pictures as there are, and at least 1 repeat, "
        "got batches of " +
        std::to_string(batch_size) + ", " + std::to_string(num_pictures) + " pictures, " +
        std::to_string(repeats) + " repeats");
  }
}

std::vector<int64_t> EpochSampler::indices(int64_t step) const {
  const RandomKey key = key_.derive(static_cast<uint64_t>(epoch(step)));
  const int64_t first = step % steps_per_epoch() * batch_size_;
  std::vector<int64_t> result(batch_size_);
  for (int64_t i = 0; i < batch_size_; ++i) {
    result[i] = static_cast<int64_t>(permuted(key, num_pictures_, (first + i) / repeats_));
  }
  return result;
}

}  // namespace elliptical::data
