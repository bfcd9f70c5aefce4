// SPDX-License-Identifier: MIT
//
// Which pictures a training step sees, as a function of its number. An epoch is a permutation of
// the pictures, each of them standing `repeats` times in a row (repeated augmentation, Hoffer et
// al. 2020), and ends after as many samples as there are pictures, cut to whole batches: with three
// repeats a third of the pictures is seen in an epoch, three times each, augmented differently.
#pragma once

#include <cstdint>
#include <vector>

#include "elliptical/base/random.h"

namespace elliptical::data {

class EpochSampler {
 public:
  /// UsageError unless there is at least one batch of pictures.
  EpochSampler(int64_t num_pictures, int64_t batch_size, int64_t repeats, RandomKey key);

  int64_t steps_per_epoch() const { return num_pictures_ / batch_size_; }
  int64_t epoch(int64_t step) const { return step / steps_per_epoch(); }

  /// Indices of the pictures of that step, counted from the start of training.
  std::vector<int64_t> indices(int64_t step) const;

 private:
  int64_t num_pictures_, batch_size_, repeats_;
  RandomKey key_;
};

}  // namespace elliptical::data
