// SPDX-License-Identifier: MIT
//
// A look at a set of sequences: what its first examples are like, and how fast they come.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "elliptical/data/image/image.h"
#include "elliptical/data/sequence/sequence_set.h"

namespace elliptical::data {

struct SampleRange {
  int64_t low = 0, high = 0;
  double mean = 0;
};

struct SequenceSample {
  int64_t count = 0;
  std::vector<int64_t> class_counts;
  std::map<std::string, SampleRange> ranges;  ///< `ids`, `second ids` of pairs, and every fact
  double seconds = 0;                         ///< that reading or making them took, in one thread
};

/// Of the first `count` examples, or of all when there are fewer.
SequenceSample sample_sequences(const SequenceSet& set, int64_t count);

/// An example for people: expressions and texts as they are, pictures as their size.
std::string shown_example(const SequenceSet& set, int64_t index);

/// The first `count` pictures of a set side by side, enlarged by whole numbers, in frames whose
/// colour is the class. Throws std::invalid_argument for a set of anything else.
Image contact_sheet(const SequenceSet& set, int64_t count, int64_t columns, int64_t scale);

}  // namespace elliptical::data
