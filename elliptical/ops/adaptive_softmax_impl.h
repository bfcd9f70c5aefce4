// SPDX-License-Identifier: MIT
//
// What the sources of the adaptive softmax share: its checks and which words are whose.
#pragma once

#include "elliptical/ops/adaptive_softmax.h"

namespace elliptical::ops {

/// Words [begin, end) of one softmax: cluster 0 is the short list, whose softmax is the head's.
struct WordRange {
  int64_t begin, end;
  int64_t size() const { return end - begin; }
};

/// Short list and clusters: K + 1 ranges that cover [0, V).
std::vector<WordRange> word_ranges(const AdaptiveSoftmaxWeights& weights);

/// The head's column of cluster c = 1 .. K.
int64_t cluster_column(const AdaptiveSoftmaxWeights& weights, int64_t cluster);

/// Throws an error that names the argument; `op` opens the message.
void check_adaptive_weights(const char* op,
                            const at::Tensor& hidden,
                            const AdaptiveSoftmaxWeights& weights);
void check_adaptive_nll(const at::Tensor& hidden,
                        const AdaptiveSoftmaxWeights& weights,
                        const at::Tensor& targets);

/// Checked float32 on the CPU.
at::Tensor adaptive_nll_fused(const at::Tensor& hidden,
                              const AdaptiveSoftmaxWeights& weights,
                              const at::Tensor& targets);

}  // namespace elliptical::ops
