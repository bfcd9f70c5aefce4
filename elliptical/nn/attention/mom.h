// SPDX-License-Identifier: MIT
//
// Median of means attention: keys are split at random into S blocks, every block is a kernel
// density of its own, and a query attends to the block whose density at the query is the median:
//
//   p_b(q) = mean_{j in I_b} kernel(q, k_j),  I_1 .. I_S of floor(M / S) keys each
//   out_n  = sum_{j in I_b*} kernel(q_n, k_j) v_j / sum_{j in I_b*} kernel(q_n, k_j)
//
// with b* the block number floor(S / 2) in ascending order of density. Keys that spoil less than
// half of the blocks move the density no further than the other blocks do. The choice counts as
// constant in the gradient. A query judges blocks by the keys that it sees (of the past in a causal
// model, never padding), skips blocks without any, and attends to itself when there is none.
// Blocks are the same for all queries, heads and sequences of a call, and drawn anew in each.
//
// selection = "global" is the form of the public code: one block for the whole call, the median of
// the mean of log kernels over all queries. In a causal model that sees the future and must be
// asked for with lookahead = true.
#pragma once

#include <vector>

#include "elliptical/nn/attention/density_mixer.h"

namespace elliptical::nn {

struct MomOptions : DensityOptions {
  int64_t num_blocks = 5;       ///< S
  bool is_overlapping = false;  ///< blocks are random subsets, not parts of a partition
  double left_out = 0.1;        ///< share of the keys that an overlapping block does not have
  bool is_global = false;       ///< one block for all queries
  bool lookahead = false;

  void visit(FieldList& fields) override;
  std::unique_ptr<Options> clone() const override;
};

/// Positions of the keys of each block, ascending, int64. With fewer keys than blocks there are as
/// many blocks as keys. Keys that a partition leaves over belong to no block.
std::vector<at::Tensor> draw_key_blocks(const MomOptions& options, int64_t num_keys, RandomKey key);

/// Throws ConfigError when a causal model would see the future without having asked for it.
std::shared_ptr<HeadMixer> make_mom_mixer(const MomOptions& options, const AttentionShape& shape);
std::shared_ptr<Attention> make_mom(const Options& options, const AttentionShape& shape);

}  // namespace elliptical::nn
