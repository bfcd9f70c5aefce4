// SPDX-License-Identifier: MIT
//
// ListOps as Long Range Arena has it. A tree is drawn from its root at depth 1: at a depth below 10
// a node is an operator with probability 1/4, at depth 10 never; otherwise it is one of the ten
// digits. An operator has 2 to 10 arguments and is one of the four, all evenly. Expressions longer
// than 500 and shorter than 2,000 tokens are kept (an operator with its ] counts 2), each once.
//
// Draw number d is a function of the seed and of d. The set is the first draws that are kept, in
// their order: train, then valid, then test. So the same set comes out of any number of threads. What
// is remembered of it are the numbers of these draws, and the cache holds nothing else: an example is
// drawn again when it is asked for, which costs some microseconds.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "elliptical/base/random.h"
#include "elliptical/data/sequence/sequence_set.h"

namespace elliptical::data {

inline constexpr int64_t kListOpsTrain = 96'000, kListOpsEval = 2'000;
inline constexpr int64_t kMinListOpsLength = 501, kMaxListOpsLength = 1999;

/// Draw number `draw` as it comes, of any length up to `max_length`; nothing when it is longer.
std::optional<std::vector<int32_t>> draw_listops(RandomKey key,
                                                 uint64_t draw,
                                                 int64_t max_length = int64_t{1} << 40);

struct ListOpsOptions {
  int64_t train_examples = kListOpsTrain;
  int64_t eval_examples = kListOpsEval;  ///< of valid and of test
  uint64_t seed = 1;
  int64_t threads = 0;  ///< that draw; 0: as many as there are processors
};

/// Which draws are kept, for all three splits, with the values of the expressions.
struct ListOpsDraws {
  std::vector<uint64_t> draws;
  std::vector<uint8_t> values;
};
ListOpsDraws find_listops_draws(const ListOpsOptions& options);

/// The same out of the cache, a checksummed file in `folder`, or into it. A file that is damaged is
/// made anew; one that can not be written is done without.
ListOpsDraws cached_listops_draws(const ListOpsOptions& options,
                                  const std::filesystem::path& folder);

/// One split; the cache is data/generated below the current folder.
std::unique_ptr<SequenceSet> open_generated_listops(Split split,
                                                    const ListOpsOptions& options,
                                                    int64_t max_length);

}  // namespace elliptical::data
