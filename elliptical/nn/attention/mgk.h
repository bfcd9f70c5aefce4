// SPDX-License-Identifier: MIT
//
// Transformer-MGK (Nguyen et al., ICML 2022): every token has two keys, and a query weighs it by a
// mixture of two Gaussians around them,
//
//   w_ij  = sum_r pi_j^r exp(-c_r |q_i - k_j^r|^2),   c_r = bandwidth_r / sqrt(D)
//   out_i = sum_j w_ij v_j / (sum_j w_ij + epsilon)
//
// A squared distance is an inner product of vectors with two more coordinates, so each component is
// a call of the fused attention op, O(N) in memory, and the two are put together by their logsumexp
// (mixtures of two softmaxes). pi is a parameter (2, H, window), one number per head and key
// position, used between 0 and 1; a window longer than it is refused. With mixture = "hard" there
// is no pi and a token counts as much as the nearer of its keys makes it,
// softmax_j(max_r -c_r |q_i - k_j^r|^2); this one builds the N x N map.
//
// Keys are made by a second map ("second_keys" beside "qkv") or by a learned shift of the first
// keys, k_j - mu^r with mu (2, H, D). A metric replaces the distance by sum_d M_d (q_d - k_d)^2,
// also with a row of the metric for each query: exact in causal models, too.
#pragma once

#include "elliptical/nn/attention/metric_source.h"

namespace elliptical::nn {

struct MgkOptions : Options, DistanceOptions {
  bool shifted_keys = false;
  bool hard = false;
  std::vector<double> bandwidths{0.5, 1.5};
  double epsilon = 1e-6;
  std::optional<int64_t> window;  ///< of pi; the model's when absent

  void visit(FieldList& fields) override;
  std::unique_ptr<Options> clone() const override;
};

/// Throws ConfigError when the options contradict each other or the shape.
std::shared_ptr<HeadMixer> make_mgk_mixer(const MgkOptions& options, const AttentionShape& shape);
std::shared_ptr<Attention> make_mgk(const Options& options, const AttentionShape& shape);

}  // namespace elliptical::nn
