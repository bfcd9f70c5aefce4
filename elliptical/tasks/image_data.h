// SPDX-License-Identifier: MIT
//
// Pictures on their way from a data set to a model: which ones a training step sees and how they
// are changed, how they are read for evaluation. Everything random is a function of the seed, the
// step and the place in the batch; worker threads make batches ahead of their use
// (data/image/loader.h).
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "elliptical/base/options.h"
#include "elliptical/base/random.h"
#include "elliptical/data/image/augment/augment.h"
#include "elliptical/data/image/augment/mix.h"
#include "elliptical/data/image/augment/sampler.h"
#include "elliptical/data/image/image_set.h"
#include "elliptical/data/image/loader.h"
#include "elliptical/data/image/resample.h"
#include "elliptical/tasks/task.h"

namespace elliptical::tasks {

struct ImageDataOptions {
  std::string name = "small-pictures";
  int64_t max_bad = 0;
  double crop_ratio = 0.875;
  int64_t repeats = 1;
  std::vector<double> mean, std;  ///< empty: those of ImageNet
  data::AugmentOptions augment;

  void visit(FieldList& fields);
  /// Throws ConfigError unless mean and std are three numbers each, std above 0.
  data::PixelStatistics statistics() const;
};

/// One split of the data set `name`, for a model that reads pictures of that size.
std::shared_ptr<const data::ImageSet> open_pictures(const std::string& name,
                                                    data::Split split,
                                                    int64_t max_bad,
                                                    int64_t image_size);

/// Numbers of the channels as (3, 1, 1).
at::Tensor channel_tensor(const std::array<double, 3>& values);

/// The part of a picture that a model sees in evaluation: the shorter side becomes
/// image_size / crop_ratio, then the square in the middle.
data::Image evaluation_view(const data::Image& picture,
                            int64_t image_size,
                            double crop_ratio,
                            data::Filter filter);

/// The training batches of a data set.
class TrainPictures {
 public:
  /// Throws ConfigError when the options do not go together, DataError when there are fewer
  /// pictures than a batch has.
  TrainPictures(std::shared_ptr<const data::ImageSet> set,
                const ImageDataOptions& options,
                const data::MixOptions& mix,
                int64_t batch_size,
                int64_t image_size,
                uint64_t seed);

  /// input (B, 3, S, S), target (B, K) shares that sum to 1. Fast for steps that follow each other.
  Batch batch(int64_t step) const { return loader_.get(step); }
  int64_t epoch_units() const { return sampler_.steps_per_epoch() * batch_size_; }
  const data::ImageSet& set() const { return *set_; }

 private:
  Batch make_batch(int64_t step) const;

  std::shared_ptr<const data::ImageSet> set_;
  data::AugmentOptions augment_;
  data::PixelStatistics statistics_;
  data::MixOptions mix_;
  int64_t batch_size_, image_size_;
  RandomKey key_;
  data::EpochSampler sampler_;
  mutable data::BatchLoader<Batch> loader_;  ///< last: its workers use everything above
};

}  // namespace elliptical::tasks
