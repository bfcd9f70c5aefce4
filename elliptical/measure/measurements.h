// SPDX-License-Identifier: MIT
//
// What the records of a run say about its weights after a step, ordered by the circumstances of the
// measurement, so that only like is compared with like.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "elliptical/base/records.h"
#include "elliptical/measure/circumstances.h"
#include "elliptical/measure/quantity.h"

namespace elliptical::measure {

/// What is measured: a column of a comparison in given circumstances.
struct Measure {
  const char* name;  ///< of the column; an attack has a name of its own
  const Quantity* quantity;
  const char* metric;        ///< of its records
  const char* block_metric;  ///< of its blocks
  const char* targets;       ///< label of its blocks; empty: they have none
  Condition condition;
};
inline constexpr std::array kMeasures = {
    Measure{"clean", &kPerplexity, "perplexity", "block_nll", "all", Condition::kClean},
    Measure{"swapped", &kPerplexity, "perplexity", "block_nll", "all", Condition::kDamaged},
    Measure{"clean targets, swapped text", &kPerplexity, "perplexity_clean_targets", "block_nll",
            "clean", Condition::kDamaged},
    Measure{"swapped targets", &kPerplexity, "perplexity_swapped_targets", "block_nll", "swapped",
            Condition::kDamaged},
    Measure{"clean", &kAccuracy, "accuracy", "block_accuracy", "", Condition::kClean},
    Measure{"corrupted", &kAccuracy, "accuracy", "block_accuracy", "", Condition::kDamaged},
    Measure{"mCE", &kCorruptionError, "mce", "block_mce", "", Condition::kDamaged},
    Measure{"attacked", &kAccuracy, "robust_accuracy", "block_robust_accuracy", "",
            Condition::kAttacked},
};

/// One of the equal parts of the data; parts without a target are left out.
struct Block {
  int64_t index = 0;
  double value = 0;  ///< mean of -log p, accuracy or error
  int64_t count = 0;
};

struct Measurement {
  double value = 0;
  int64_t count = 0;          ///< targets
  size_t place = 0;           ///< among the records of the run, where it was first recorded
  std::vector<Block> blocks;  ///< all of the data, or none
  int64_t num_classes = 0;    ///< of the pictures; 0: unknown
  /// Why a robust accuracy may be too high (base/attack_flags.h).
  std::vector<std::string> doubts = {};
};

/// Whether it is one of the numbers that runs are compared by, on undamaged data.
bool is_clean_measure(const Record& record);

/// Per circumstances, one place for each of kMeasures.
using Measurements = std::map<Circumstances, std::map<size_t, Measurement>>;

/// The measurements that the records of a run tell of its weights after `step`. A later record of
/// the same thing takes the place of an earlier one. Evaluations with another scope of the metric
/// than the trained one, those of other weights than the run is measured by, attacks on damaged
/// data, and parts of pictures that do not have all classes alike, as earlier versions cut them,
/// are left out.
Measurements measurements_at(const std::vector<Record>& records, int64_t step);

/// The last step that the records speak of; -1: none.
int64_t last_measured_step(const std::vector<Record>& records);

}  // namespace elliptical::measure
