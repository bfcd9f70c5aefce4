// SPDX-License-Identifier: MIT
//
// What became of attacked pictures, and its line in `attacks.jsonl`. A line that others may have
// written counts only when its numbers fit each other, so that whoever adds scores up can trust
// them. run/attack_state.h says when a line is used.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "elliptical/base/records.h"

namespace elliptical::measure {

/// What became of the pictures of a batch, or of several.
struct AttackScore {
  int64_t count = 0;
  int64_t clean_top1 = 0, clean_top5 = 0, robust_top1 = 0, robust_top5 = 0;
  double seconds = 0;
  bool is_randomised = false, looks_like_probabilities = false, has_few_classes = false;
  int64_t num_zero_gradients = 0;
  std::string outcomes;  ///< of each picture, in order: '1' where it is robust, else '0'
  /// Of auto-attack: pictures that are still robust after each of its attacks, in order.
  std::vector<std::pair<std::string, int64_t>> stages;

  /// Scores of one case have the same stages, or none; DataError when these have others.
  void add(const AttackScore& other);
};

/// A batch that an attack has finished.
struct AttackedBatch {
  std::string digest;  ///< of the case
  int64_t batch = 0;
  AttackScore score;
};

/// Its line. Lines of versions that only counted pictures have no outcomes.
Record to_record(const AttackedBatch& batch);
/// DataError names what is missing or does not fit.
AttackedBatch to_attacked_batch(const Record& record);

}  // namespace elliptical::measure
