// SPDX-License-Identifier: MIT
#include "elliptical/nn/adaptive_softmax.h"

#include <torch/torch.h>

namespace elliptical::nn {

AdaptiveSoftmax::AdaptiveSoftmax(int64_t vocabulary_size,
                                 int64_t dim,
                                 const std::vector<int64_t>& cutoffs)
    : bias_(register_parameter("bias", torch::empty({vocabulary_size}))) {
  for (const int64_t cutoff : cutoffs) {
    if (cutoff < vocabulary_size) cutoffs_.push_back(cutoff);
  }
  if (cutoffs_.empty()) return;
  const auto num_clusters = static_cast<int64_t>(cutoffs_.size());
  cluster_weight_ = register_parameter("cluster_weight", torch::empty({num_clusters, dim}));
  cluster_bias_ = register_parameter("cluster_bias", torch::empty({num_clusters}));
}

ops::AdaptiveSoftmaxWeights AdaptiveSoftmax::weights(const at::Tensor& weight) const {
  if (!cutoffs_.empty()) return {weight, bias_, cluster_weight_, cluster_bias_, cutoffs_};
  return {weight,
          bias_,
          at::empty({0, weight.size(1)}, weight.options()),
          at::empty({0}, weight.options()),
          {}};
}

at::Tensor AdaptiveSoftmax::nll(const at::Tensor& hidden,
                                const at::Tensor& weight,
                                const at::Tensor& targets) const {
  return ops::adaptive_nll(hidden, weights(weight), targets);
}

at::Tensor AdaptiveSoftmax::log_probabilities(const at::Tensor& hidden,
                                              const at::Tensor& weight) const {
  return ops::adaptive_log_probabilities(hidden, weights(weight));
}

}  // namespace elliptical::nn
