// SPDX-License-Identifier: MIT
//
// What the records of a run say about its final weights, ordered by the circumstances of the
// measurement, so that only like is compared with like.
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "elliptical/report/run_data.h"

namespace elliptical::report {

/// A column of a comparison.
struct Measure {
  const char* name;
  const char* metric;   ///< of its records
  const char* targets;  ///< label of its blocks
  bool swapped;         ///< text with swapped words
};
inline constexpr std::array kMeasures = {
    Measure{"clean", "perplexity", "all", false},
    Measure{"swapped", "perplexity", "all", true},
    Measure{"clean targets, swapped text", "perplexity_clean_targets", "clean", true},
    Measure{"swapped targets", "perplexity_swapped_targets", "swapped", true},
};

/// One of the equal parts of the text; parts without a target are left out.
struct Block {
  int64_t index = 0;
  double nll = 0;  ///< mean of -log p
  int64_t count = 0;
};

struct Measurement {
  double perplexity = 0;
  int64_t count = 0;          ///< targets
  std::vector<Block> blocks;  ///< all of the text, or none
};

/// What was measured, and on what: data, split, how windows lie, what was done to the text.
struct Circumstances {
  std::string split;
  double swap_rate = 0;
  std::string windows;  ///< data and how they were read, as one text
  std::string damage;   ///< what else is known about the swapped words
  auto operator<=>(const Circumstances&) const = default;
};

Circumstances circumstances_of(const Record& record);

/// Per circumstances, one place for each of kMeasures.
using Measurements = std::map<Circumstances, std::map<size_t, Measurement>>;

/// The measurements of a run after `step`. A later record of the same thing takes the place of an
/// earlier one. Evaluations with another scope of the metric than the trained one are left out.
Measurements measurements_at(const RunData& run, int64_t step);

/// A label as text, whatever its type; "" when it is absent.
std::string label_text(const Record& record, const std::string& name);

/// The last step that records of the run speak of; -1: none.
int64_t last_measured_step(const RunData& run);

}  // namespace elliptical::report
