// SPDX-License-Identifier: MIT
//
// Decoding token by token: what the next token costs after so many others. With a cache of keys and
// values and a running metric nothing of the prefix is computed again; what may grow with the
// position is attention over the cached keys.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/measure.h"
#include "bench/training.h"

namespace elliptical::bench {

struct DecodeResult {
  std::string attention;
  int64_t position = 0;  ///< tokens before
  Timing timing;         ///< seconds per token, up to the log-probabilities of all words
};

/// Fills a stream up to each position in turn and times single tokens there; the two kinds of
/// attention take turns, position by position.
std::vector<DecodeResult> measure_decode(const TrainingCase& shape,
                                         const std::vector<std::string>& attentions,
                                         const std::vector<int64_t>& positions,
                                         int repeats,
                                         const ProgressFn& progress = {});

}  // namespace elliptical::bench
