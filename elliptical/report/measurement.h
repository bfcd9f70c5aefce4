// SPDX-License-Identifier: MIT
//
// What the records of a run say about its final weights, ordered by the circumstances of the
// measurement, so that only like is compared with like.
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "elliptical/report/quantity.h"
#include "elliptical/report/run_data.h"

namespace elliptical::report {

/// A column of a comparison.
struct Measure {
  const char* name;
  const Quantity* quantity;
  const char* metric;        ///< of its records
  const char* block_metric;  ///< of its blocks
  const char* targets;       ///< label of its blocks; empty: they have none
  bool damaged;              ///< text with swapped words, corrupted pictures
};
inline constexpr std::array kMeasures = {
    Measure{"clean", &kPerplexity, "perplexity", "block_nll", "all", false},
    Measure{"swapped", &kPerplexity, "perplexity", "block_nll", "all", true},
    Measure{"clean targets, swapped text", &kPerplexity, "perplexity_clean_targets", "block_nll",
            "clean", true},
    Measure{"swapped targets", &kPerplexity, "perplexity_swapped_targets", "block_nll", "swapped",
            true},
    Measure{"clean", &kAccuracy, "accuracy", "block_accuracy", "", false},
    Measure{"corrupted", &kAccuracy, "accuracy", "block_accuracy", "", true},
};

/// One of the equal parts of the data; parts without a target are left out.
struct Block {
  int64_t index = 0;
  double value = 0;  ///< mean of -log p, or accuracy
  int64_t count = 0;
};

struct Measurement {
  double value = 0;
  int64_t count = 0;          ///< targets
  std::vector<Block> blocks;  ///< all of the data, or none
};

/// What was measured, and on what: data, split, how they were read, what was done to them.
struct Circumstances {
  std::string split;
  bool damaged = false;
  double strength = 0;     ///< of the damage: rate of swapped words, severity (0: all of them)
  std::string reading;     ///< data and how they were read, as one text
  std::string corruption;  ///< of pictures: which ones
  std::string damage;      ///< what else is known about the damage
  auto operator<=>(const Circumstances&) const = default;
};

Circumstances circumstances_of(const Record& record);

/// Whether it is one of the numbers that runs are compared by, on undamaged data.
bool is_clean_measure(const Record& record);

/// Per circumstances, one place for each of kMeasures.
using Measurements = std::map<Circumstances, std::map<size_t, Measurement>>;

/// The measurements of a run after `step`. A later record of the same thing takes the place of an
/// earlier one. Evaluations with another scope of the metric than the trained one, and those of an
/// average of weights, are left out.
Measurements measurements_at(const RunData& run, int64_t step);

/// A label as text, whatever its type; "" when it is absent.
std::string label_text(const Record& record, const std::string& name);

/// The last step that records of the run speak of; -1: none.
int64_t last_measured_step(const RunData& run);

}  // namespace elliptical::report
