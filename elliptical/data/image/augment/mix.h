// SPDX-License-Identifier: MIT
//
// Mixup (Zhang et al. 2018) and cutmix (Yun et al. 2019) of a batch: sample i meets its partner,
// sample B - 1 - i, with one share `lambda` for the whole batch,
//     mixup   x_i <- lambda x_i + (1 - lambda) x_partner
//     cutmix  a box of x_i is cut from x_partner, lambda is what is left of x_i
//     target  lambda t(y_i) + (1 - lambda) t(y_partner)
// where t is one-hot with label smoothing s: s / K off, 1 - s + s / K on.
#pragma once

#include <cstdint>

#include "elliptical/base/options.h"
#include "elliptical/base/random.h"
#include "elliptical/data/image/augment/geometry.h"

namespace elliptical::data {

struct MixOptions {
  double mixup_alpha = 0.8;
  double cutmix_alpha = 1.0;
  double probability = 1.0;
  double cutmix_probability = 0.5;
  double label_smoothing = 0.1;

  void visit(FieldList& fields) {
    fields.add("mixup_alpha", mixup_alpha, "lambda of mixup is Beta(alpha, alpha); 0: no mixup",
               between(0, 1e6));
    fields.add("cutmix_alpha", cutmix_alpha, "the same for cutmix; 0: no cutmix", between(0, 1e6));
    fields.add("probability", probability, "of a batch to be mixed", between(0, 1));
    fields.add("cutmix_probability", cutmix_probability, "of cutmix where both are on",
               between(0, 1));
    fields.add("label_smoothing", label_smoothing, "weight of all classes alike in a target",
               below(0, 1));
  }
};

/// How one batch is mixed.
struct BatchMix {
  double lambda = 1.0;
  Box box;  ///< of cutmix; an empty one means mixup

  bool is_cutmix() const { return box.width > 0 && box.height > 0; }
};

/// `key` is that of the step.
BatchMix draw_mix(const MixOptions& options, int64_t width, int64_t height, RandomKey key);

/// pixels (B, 3, height, width), in place. B is even, so that everyone has a partner; UsageError
/// otherwise. Nothing happens when lambda is 1.
void mix_pixels(
    const BatchMix& mix, int64_t batch_size, int64_t width, int64_t height, float* pixels);

/// labels (B) -> targets (B, num_classes), each row with sum 1.
void mix_targets(const BatchMix& mix,
                 double label_smoothing,
                 int64_t batch_size,
                 int64_t num_classes,
                 const int64_t* labels,
                 float* targets);

}  // namespace elliptical::data
