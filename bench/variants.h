// SPDX-License-Identifier: MIT
//
// What each attention variant costs, with its default options: seconds per training step of a small
// language model (see training.h), all variants in turns, and how the memory of forward and
// backward of one of its layers grows with the number of tokens.
#pragma once

#include <string>
#include <vector>

#include "bench/measure.h"
#include "bench/peak_memory.h"
#include "bench/training.h"

namespace elliptical::bench {

struct VariantResult {
  std::string attention;
  std::string refusal;  ///< why there are no numbers; empty when there are
  int64_t num_parameters = 0;
  Timing step;  ///< seconds
  /// Of one causal layer, one sequence; without the longest where it takes many seconds.
  std::vector<MemoryPoint> memory;
};

/// One result per name, in that order. A variant that does not go into this causal model is
/// refused, with its own words.
std::vector<VariantResult> measure_variants(const TrainingCase& shape,
                                            const std::vector<std::string>& attentions,
                                            const std::vector<int64_t>& lengths,
                                            int repeats,
                                            const ProgressFn& progress = {});

}  // namespace elliptical::bench
