// SPDX-License-Identifier: MIT
#include "elliptical/tasks/image_data.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "elliptical/base/errors.h"

namespace elliptical::tasks {

void ImageDataOptions::visit(FieldList& fields) {
  fields.add("name", name, "small-pictures, a data set of `elliptical data list`, or a folder");
  fields.add("max_bad", max_bad, "unreadable pictures that are replaced before it is an error",
             at_least(0));
  fields.add("crop_ratio", crop_ratio,
             "side of what evaluation sees / shorter side of the picture; 0.875: 224 of 256",
             Limits{.low = 0, .high = 1, .open_low = true});
  fields.add("repeats", repeats, "times that a picture stands in an epoch, augmented anew each",
             between(1, 1000));
  fields.add("mean", mean, "mean of red, green, blue in [0, 1]; empty: ImageNet's");
  fields.add("std", std, "their standard deviations; empty: ImageNet's");
  fields.add_group("augment", augment);
}

data::PixelStatistics ImageDataOptions::statistics() const {
  data::PixelStatistics result;
  for (const auto& [which, from, into] :
       {std::tuple("mean", &mean, &result.mean), std::tuple("std", &std, &result.std)}) {
    if (from->empty()) continue;
    const bool is_std = into == &result.std;
    const bool is_good =
        from->size() == into->size() &&
        std::all_of(from->begin(), from->end(), [&](double value) { return !is_std || value > 0; });
    if (!is_good) {
      throw ConfigError("data: " + std::string(which) + " must be three numbers" +
                        (is_std ? " above 0" : "") + ", red, green and blue, got " +
                        std::to_string(from->size()) + (is_std ? " or one that is not" : ""));
    }
    std::copy(from->begin(), from->end(), into->begin());
  }
  return result;
}

std::shared_ptr<const data::ImageSet> open_pictures(const std::string& name,
                                                    data::Split split,
                                                    int64_t max_bad,
                                                    int64_t image_size) {
  return data::open_images(name, split, {.max_bad = max_bad, .side = image_size});
}

at::Tensor channel_tensor(const std::array<double, 3>& values) {
  return at::tensor({values[0], values[1], values[2]}).to(at::kFloat).reshape({3, 1, 1});
}

data::Image evaluation_view(const data::Image& picture,
                            int64_t image_size,
                            double crop_ratio,
                            data::Filter filter) {
  const auto side = std::lround(static_cast<double>(image_size) / crop_ratio);
  return data::center_crop(data::resize_shorter(picture, side, filter), image_size);
}

TrainPictures::TrainPictures(std::shared_ptr<const data::ImageSet> set,
                             const ImageDataOptions& options,
                             const data::MixOptions& mix,
                             int64_t batch_size,
                             int64_t image_size,
                             uint64_t seed)
    : set_(std::move(set)),
      augment_(options.augment),
      statistics_(options.statistics()),
      mix_(mix),
      batch_size_(batch_size),
      image_size_(image_size),
      key_(RandomKey(seed).derive("pictures")),
      sampler_(set_->size(), batch_size, options.repeats, key_.derive("epochs")),
      loader_([this](int64_t step) { return make_batch(step); }) {
  const bool mixes = mix_.probability > 0 && (mix_.mixup_alpha > 0 || mix_.cutmix_alpha > 0);
  if (mixes && batch_size % 2 != 0) {
    throw ConfigError(
        "task: batch_size must be even, so that every picture has one to be mixed "
        "with, got " +
        std::to_string(batch_size) + " (or set task.mix.probability=0)");
  }
}

Batch TrainPictures::make_batch(int64_t step) const {
  const std::vector<int64_t> indices = sampler_.indices(step);
  const RandomKey key = key_.derive(static_cast<uint64_t>(step));
  const int64_t length = data::Image::kChannels * image_size_ * image_size_;
  Batch batch{.input = at::empty({batch_size_, data::Image::kChannels, image_size_, image_size_}),
              .target = at::empty({batch_size_, set_->num_classes()}),
              .num_units = batch_size_};
  auto* pixels = batch.input.mutable_data_ptr<float>();
  for (int64_t i = 0; i < batch_size_; ++i) {
    data::augment(set_->get(indices[static_cast<size_t>(i)]), augment_, statistics_, image_size_,
                  key.derive(static_cast<uint64_t>(i)), pixels + i * length);
  }
  std::vector<int64_t> labels;
  for (const int64_t index : indices) labels.push_back(set_->label(index));
  const data::BatchMix mix = data::draw_mix(mix_, image_size_, image_size_, key.derive("mix"));
  data::mix_pixels(mix, batch_size_, image_size_, image_size_,
                   batch.input.mutable_data_ptr<float>());
  for (int64_t i = 0; i < batch_size_; ++i) {
    data::augment_patches(pixels + i * length, image_size_, augment_.patches, statistics_,
                          key.derive(static_cast<uint64_t>(i)).derive("patches"));
  }
  data::mix_targets(mix, mix_.label_smoothing, batch_size_, set_->num_classes(), labels.data(),
                    batch.target.mutable_data_ptr<float>());
  return batch;
}

}  // namespace elliptical::tasks
