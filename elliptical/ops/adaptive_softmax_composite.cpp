// SPDX-License-Identifier: MIT
//
// The adaptive softmax as plain ATen operations, with the logits of every softmax in memory at
// once.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include "elliptical/ops/adaptive_softmax_impl.h"

namespace elliptical::ops {
namespace {

/// Log-softmax over the short list and the clusters: (T, cutoffs[0] + K), or (T, V).
at::Tensor head_log_softmax(const at::Tensor& hidden, const AdaptiveSoftmaxWeights& weights) {
  at::Tensor weight = weights.weight, bias = weights.bias;
  if (!weights.cutoffs.empty()) {
    weight = at::cat({weight.slice(0, 0, weights.cutoffs[0]), weights.cluster_weight});
    bias = at::cat({bias.slice(0, 0, weights.cutoffs[0]), weights.cluster_bias});
  }
  return at::log_softmax(at::addmm(bias, hidden, weight.t()), -1);
}

/// Log-softmax over the words of one cluster: (T, words).
at::Tensor tail_log_softmax(const at::Tensor& hidden,
                            const AdaptiveSoftmaxWeights& weights,
                            WordRange words) {
  const at::Tensor weight = weights.weight.slice(0, words.begin, words.end);
  const at::Tensor bias = weights.bias.slice(0, words.begin, words.end);
  return at::log_softmax(at::addmm(bias, hidden, weight.t()), -1);
}

at::Tensor gather_columns(const at::Tensor& rows, const at::Tensor& columns) {
  return rows.gather(1, columns.unsqueeze(1)).squeeze(1);
}

}  // namespace

at::Tensor adaptive_nll_composite(const at::Tensor& hidden,
                                  const AdaptiveSoftmaxWeights& weights,
                                  const at::Tensor& targets) {
  const std::vector<WordRange> ranges = word_ranges(weights);
  const at::Tensor head = head_log_softmax(hidden, weights);
  at::Tensor column = targets;  // of the head
  std::vector<at::Tensor> tail_tokens, tail_log_p;
  for (size_t c = 1; c < ranges.size(); ++c) {
    const auto [begin, end] = ranges[c];
    const at::Tensor inside = targets.ge(begin).logical_and(targets.lt(end));
    column = column.masked_fill(inside, cluster_column(weights, static_cast<int64_t>(c)));
    const at::Tensor tokens = inside.nonzero().squeeze(1);
    const at::Tensor log_p = tail_log_softmax(hidden.index_select(0, tokens), weights, ranges[c]);
    tail_tokens.push_back(tokens);
    tail_log_p.push_back(gather_columns(log_p, targets.index_select(0, tokens) - begin));
  }
  at::Tensor log_p = gather_columns(head, column);
  for (size_t c = 0; c < tail_tokens.size(); ++c) {
    log_p = log_p.index_add(0, tail_tokens[c], tail_log_p[c]);
  }
  return -log_p;
}

at::Tensor adaptive_log_probabilities(const at::Tensor& hidden,
                                      const AdaptiveSoftmaxWeights& weights) {
  check_adaptive_weights("adaptive_log_probabilities", hidden, weights);
  const std::vector<WordRange> ranges = word_ranges(weights);
  const at::Tensor head = head_log_softmax(hidden, weights);
  std::vector<at::Tensor> parts{head.slice(1, 0, ranges[0].end)};
  for (size_t c = 1; c < ranges.size(); ++c) {
    const int64_t column = cluster_column(weights, static_cast<int64_t>(c));
    parts.push_back(tail_log_softmax(hidden, weights, ranges[c]) +
                    head.slice(1, column, column + 1));
  }
  return at::cat(parts, 1);
}

}  // namespace elliptical::ops
