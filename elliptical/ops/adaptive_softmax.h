// SPDX-License-Identifier: MIT
//
// Adaptive softmax (Grave et al. 2017) with full-width clusters, as the paper's language model uses
// it: words [0, cutoffs[0]) and one logit per cluster share the head, cluster c = 1 .. K holds
// words [cutoffs[c-1], cutoffs[c]) (the last one up to V):
//
//   -log p(w) = -log softmax_head(w)                                       w in the short list
//   -log p(w) = -log softmax_head(cluster c) - log softmax_c(w)            w in cluster c
//
// Cluster c reads the head column cutoffs[0] + K - c (counted from the end; the published layout).
// Cutoffs at or above V are left out by the caller. Without cutoffs this is the full softmax.
// Logits exist for a chunk of tokens and words at a time only, forward and backward.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace elliptical::ops {

struct AdaptiveSoftmaxWeights {
  at::Tensor weight;             ///< (V, C): may be the embedding table itself
  at::Tensor bias;               ///< (V)
  at::Tensor cluster_weight;     ///< (K, C)
  at::Tensor cluster_bias;       ///< (K)
  std::vector<int64_t> cutoffs;  ///< K of them, increasing, in (0, V)
};

/// hidden (T, C), targets (T) int64 in [0, V) -> -log p(targets) (T), differentiable in hidden and
/// the weights.
at::Tensor adaptive_nll(const at::Tensor& hidden,
                        const AdaptiveSoftmaxWeights& weights,
                        const at::Tensor& targets);
at::Tensor adaptive_nll_composite(const at::Tensor& hidden,
                                  const AdaptiveSoftmaxWeights& weights,
                                  const at::Tensor& targets);

/// log p of every word: (T, V). For generation and small vocabularies.
at::Tensor adaptive_log_probabilities(const at::Tensor& hidden,
                                      const AdaptiveSoftmaxWeights& weights);

}  // namespace elliptical::ops
