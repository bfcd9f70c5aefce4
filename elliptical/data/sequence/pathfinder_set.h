// SPDX-License-Identifier: MIT
//
// Pathfinder as sequences of pixels: generated, a picture a function of seed, split and number, or
// out of the files that were released.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "elliptical/data/sequence/pathfinder.h"
#include "elliptical/data/sequence/sequence_set.h"

namespace elliptical::data {

inline constexpr int64_t kPathfinderTrain = 160'000, kPathfinderEval = 20'000;

/// The key of one generated picture.
RandomKey pathfinder_key(uint64_t seed,
                         const PathfinderOptions& options,
                         Split split,
                         int64_t index);

/// `name` as in sequence_set.h: pathfinder-32, pathfinder-32/9, pathfinder-32/6, pathfinder-128.
/// Null: it is none of these.
std::unique_ptr<SequenceSet> open_generated_pathfinder(const std::string& name,
                                                       Split split,
                                                       const OpenSequencesOptions& options);

/// A picture of the released files.
struct PathfinderFile {
  std::string path;  ///< below the folder
  int64_t label = 0;
  int64_t contour_length = 0;
};

/// A line of their metadata, `imgs/0 sample_17.png 17 1 1.0 14 4 2 0.5 1 1`: folder, file, number,
/// label, continuity, lengths of contour and distractors, length and thickness of strokes, margin,
/// number of contrasts. DataError "WHERE: ..." for anything else, and for a path that leaves the
/// folder.
PathfinderFile parse_pathfinder_line(std::string_view line, const std::string& where);

/// FOLDER/imgs/BATCH/sample_N.png with FOLDER/metadata/BATCH.npy, which is text. Files without a
/// byte are left out, as they are known to occur. A fixed random order gives 80 % to train, 10 % each
/// to valid and test.
std::unique_ptr<SequenceSet> open_pathfinder_files(const std::filesystem::path& folder,
                                                   const std::string& name,
                                                   Split split,
                                                   const OpenSequencesOptions& options);

}  // namespace elliptical::data
