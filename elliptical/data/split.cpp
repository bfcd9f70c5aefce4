// SPDX-License-Identifier: MIT
#include "elliptical/data/split.h"

#include "elliptical/base/errors.h"
#include "elliptical/base/names.h"

namespace elliptical::data {

std::string to_string(Split split) {
  return split == Split::kTrain ? "train" : split == Split::kValid ? "valid" : "test";
}

Split split_from_string(const std::string& name) {
  for (const Split split : kSplits) {
    if (to_string(split) == name) return split;
  }
  throw UsageError("split: " + unknown_name(name, {"train", "valid", "test"}));
}

}  // namespace elliptical::data
