// SPDX-License-Identifier: MIT
//
// The output layer of a language model: adaptive softmax over V words (ops/adaptive_softmax.h)
// whose word vectors are the embedding table of the input. Owns the biases and the cluster vectors.
#pragma once

#include <torch/nn/module.h>

#include <vector>

#include "elliptical/ops/adaptive_softmax.h"

namespace elliptical::nn {

class AdaptiveSoftmax : public torch::nn::Module {
 public:
  /// Cutoffs at or above the vocabulary size are left out.
  AdaptiveSoftmax(int64_t vocabulary_size, int64_t dim, const std::vector<int64_t>& cutoffs);

  /// hidden (T, C), word vectors (V, C), targets (T) -> -log p (T).
  at::Tensor nll(const at::Tensor& hidden,
                 const at::Tensor& weight,
                 const at::Tensor& targets) const;
  /// (T, C) -> (T, V).
  at::Tensor log_probabilities(const at::Tensor& hidden, const at::Tensor& weight) const;

  const std::vector<int64_t>& cutoffs() const { return cutoffs_; }

 private:
  ops::AdaptiveSoftmaxWeights weights(const at::Tensor& weight) const;

  std::vector<int64_t> cutoffs_;
  at::Tensor bias_;                           ///< (V)
  at::Tensor cluster_weight_, cluster_bias_;  ///< (K, C), (K); no parameters without clusters
};

}  // namespace elliptical::nn
