// SPDX-License-Identifier: MIT
//
// RandAugment (Cubuk et al. 2020) as DeiT was trained with it, `rand-m9-mstd0.5-inc1`: a few
// operations drawn with replacement from fifteen, each applied with probability 1/2 at a magnitude
// around 9 of 10, where more is always stronger.
#pragma once

#include <cstdint>
#include <vector>

#include "elliptical/base/options.h"
#include "elliptical/base/random.h"
#include "elliptical/data/image/augment/geometry.h"
#include "elliptical/data/image/image.h"

namespace elliptical::data {

struct RandAugmentOptions {
  int64_t num_operations = 2;
  double magnitude = 9;
  double magnitude_std = 0.5;
  double probability = 0.5;

  void visit(FieldList& fields) {
    fields.add("num_operations", num_operations, "operations drawn for a picture, 0: none",
               between(0, 15));
    fields.add("magnitude", magnitude, "mean of their strength", between(0, 10));
    fields.add("magnitude_std", magnitude_std, "its deviation from one use to the next",
               between(0, 100));
    fields.add("probability", probability, "of each operation to be applied", between(0, 1));
  }
};

/// What an operation gets: v = magnitude / 10, and -1 or 1 for the operations that have two
/// directions.
struct OperationStrength {
  double v = 0;
  double sign = 1;
};

struct AugmentOperation {
  const char* name;
  void (*apply)(Image& picture, OperationStrength strength, Colour fill);
};

/// The fifteen operations, sorted as in the table of the recipe.
const std::vector<AugmentOperation>& rand_augment_operations();

/// `fill` is what geometric operations show outside the picture: the mean colour of the data.
void rand_augment(Image& picture, const RandAugmentOptions& options, Colour fill, RandomKey key);

}  // namespace elliptical::data
