// SPDX-License-Identifier: MIT
#include "elliptical/data/image/augment/mix.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "elliptical/base/distributions.h"
#include "elliptical/base/errors.h"

namespace elliptical::data {
namespace {

/// From `centre - side / 2` to `centre + side / 2`, cut off at the picture: an odd side loses one.
void place(int64_t side, int64_t size, RandomStream& random, int64_t& begin, int64_t& length) {
  const auto centre = static_cast<int64_t>(random.below(size));
  begin = std::clamp<int64_t>(centre - side / 2, 0, size);
  length = std::clamp<int64_t>(centre + side / 2, 0, size) - begin;
}

/// Both partners of one channel row, each with the other's values.
void mix_rows(double lambda, int64_t count, float* a, float* b) {
  const auto own = static_cast<float>(lambda), other = static_cast<float>(1.0 - lambda);
  for (int64_t i = 0; i < count; ++i) {
    const float first = a[i], second = b[i];
    a[i] = own * first + other * second;
    b[i] = own * second + other * first;
  }
}

}  // namespace

BatchMix draw_mix(const MixOptions& options, int64_t width, int64_t height, RandomKey key) {
  RandomStream random(key);
  BatchMix mix;
  const bool can_cut = options.cutmix_alpha > 0, can_blend = options.mixup_alpha > 0;
  if (!draw_bool(random, options.probability) || (!can_cut && !can_blend)) return mix;
  const bool cuts = can_cut && (!can_blend || draw_bool(random, options.cutmix_probability));
  const double alpha = cuts ? options.cutmix_alpha : options.mixup_alpha;
  mix.lambda = draw_beta(random, alpha, alpha);
  if (!cuts) return mix;

  const double ratio = std::sqrt(1.0 - mix.lambda);
  const auto side = [ratio](int64_t size) {
    return static_cast<int64_t>(static_cast<double>(size) * ratio);
  };
  place(side(height), height, random, mix.box.top, mix.box.height);
  place(side(width), width, random, mix.box.left, mix.box.width);
  mix.lambda = 1.0 - static_cast<double>(mix.box.width * mix.box.height) /
                         static_cast<double>(width * height);
  return mix;
}

void mix_pixels(
    const BatchMix& mix, int64_t batch_size, int64_t width, int64_t height, float* pixels) {
  if (mix.lambda == 1.0) return;
  if (batch_size % 2 != 0) {
    throw UsageError("mixup: batch size must be even, got " + std::to_string(batch_size));
  }
  const int64_t sample = 3 * height * width;
  for (int64_t i = 0; i < batch_size / 2; ++i) {
    float* const a = pixels + i * sample;
    float* const b = pixels + (batch_size - 1 - i) * sample;
    if (!mix.is_cutmix()) {
      mix_rows(mix.lambda, sample, a, b);
      continue;
    }
    for (int64_t channel = 0; channel < 3; ++channel) {
      for (int64_t y = mix.box.top; y < mix.box.top + mix.box.height; ++y) {
        const int64_t offset = (channel * height + y) * width + mix.box.left;
        std::swap_ranges(a + offset, a + offset + mix.box.width, b + offset);
      }
    }
  }
}

void mix_targets(const BatchMix& mix,
                 double label_smoothing,
                 int64_t batch_size,
                 int64_t num_classes,
                 const int64_t* labels,
                 float* targets) {
  const double off = label_smoothing / static_cast<double>(num_classes);
  const double on = 1.0 - label_smoothing;  // beside `off`
  std::fill_n(targets, batch_size * num_classes, static_cast<float>(off));
  for (int64_t i = 0; i < batch_size; ++i) {
    float* const row = targets + i * num_classes;
    const int64_t own = labels[i], other = labels[batch_size - 1 - i];
    if (own == other) {
      row[own] = static_cast<float>(off + on);
    } else {
      row[own] = static_cast<float>(off + on * mix.lambda);
      row[other] = static_cast<float>(off + on * (1.0 - mix.lambda));
    }
  }
}

}  // namespace elliptical::data
